import {
  apiServerEndpoint,
  type Endpoint,
  kubeletEndpoint,
  runtimeEndpoint,
  type SessionRequest,
} from "@sluice/lab/conformance";
import { DEFAULT_RUNTIME_ENDPOINT } from "../../config/sections/kubelet-listener.ts";
import { findRunningContainer, findSandbox } from "../../cri/pods.ts";
import { parseStreamingUrl } from "../../cri/streaming-url.ts";
import type { ValuesOf } from "../command.ts";
import { conformanceFlags } from "../commands/conformance.ts";
import type { TargetValues } from "../commands/target-flags.ts";
import { openTarget, serverSpecOf, targetSpecOf } from "../load/load-target.ts";
import { openRuntime } from "../probe/probe-runtime.ts";
import { UsageError } from "../usage-error.ts";

/** Servers without an API server in front; users must name the pod's container. */
const DIRECT_FLAGS = ["kubelet", "runtime-endpoint", "streaming-url"] as const;

interface OpenEndpoint {
  readonly endpoint: Endpoint;
  readonly close?: () => void;
}

type Values = Pick<ValuesOf<typeof conformanceFlags>, "pod" | (typeof DIRECT_FLAGS)[number]> & TargetValues;

/**
 * Opens the endpoint that the flags name. Throws UsageError, ConfigurationError for a kubeconfig,
 * and a runtime's errors.
 */
export async function openEndpoint(values: Values): Promise<OpenEndpoint> {
  if (values.pod === undefined) {
    throw new UsageError(`--pod ${conformanceFlags.pod.value} is required`, { showsUsage: true });
  }
  const [namespace = "", name = "", container, ...rest] = values.pod.split("/");
  if (namespace === "" || name === "" || container === "" || rest.length > 0)
    throw new UsageError(`--pod ${values.pod}: must be NAMESPACE/NAME or NAMESPACE/NAME/CONTAINER`);
  const direct = DIRECT_FLAGS.filter((flag) => values[flag] !== undefined);
  if (direct.length > 0) {
    if (container === undefined) throw new UsageError(`--${direct[0]}: --pod needs its container`);
    const pod = { namespace, pod: name, container };
    if (values.kubelet === undefined) return openRuntimeEndpoint(values, pod);
    if (direct.length > 1) throw new UsageError(`--kubelet and --${direct[1]}: only one server can be tried`);
    const spec = await serverSpecOf(values, "--kubelet", values.kubelet);
    return { endpoint: kubeletEndpoint(await openTarget(spec), pod) };
  }
  const target = await openTarget(await targetSpecOf(values));
  return { endpoint: apiServerEndpoint(target, { namespace, pod: name, container }) };
}

/**
 * A runtime's streaming URL works for one session, so the runtime creates one before each.
 * --streaming-url only names the server.
 */
async function openRuntimeEndpoint(
  values: Values,
  { namespace, pod, container }: { namespace: string; pod: string; container: string },
): Promise<OpenEndpoint> {
  const runtime = await openRuntime(values["runtime-endpoint"] ?? DEFAULT_RUNTIME_ENDPOINT);
  try {
    const { runtimeName, runtimeVersion } = await runtime.version();
    const sandbox = await findSandbox(runtime, { namespace, pod });
    const { id } = await findRunningContainer(runtime, sandbox, container);
    const textOf = (request: SessionRequest): Promise<string> => {
      if (request.kind === "port-forward") {
        const { legacyPort } = request;
        return runtime.portForwardUrl(sandbox.id, legacyPort === undefined ? [] : [legacyPort]);
      }
      const { kind, command, streams } = request;
      return kind === "exec" ? runtime.execUrl(id, command, streams) : runtime.attachUrl(id, streams);
    };
    const urlOf = async (request: SessionRequest): Promise<URL> => parseStreamingUrl(await textOf(request));
    const given = values["streaming-url"] ?? (await urlOf({ kind: "port-forward" })).href;
    const spec = await serverSpecOf(values, "--streaming-url", given);
    const target = await openTarget({ ...spec, url: new URL(given).origin });
    const name = `${runtimeName} ${runtimeVersion}, ${target.url.origin}`;
    return { endpoint: runtimeEndpoint(name, target, urlOf), close: () => runtime.close() };
  } catch (error) {
    runtime.close();
    throw error;
  }
}
