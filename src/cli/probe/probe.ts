import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { Container, Pod } from "../../api/objects.ts";
import type { Probe, ProbeHandler } from "../../api/probe-objects.ts";
import { readManifestFiles } from "../../cluster/manifest-files.ts";
import { parseManifests } from "../../cluster/manifests.ts";
import { FeatureGateError, FeatureGates } from "../../config/feature-gates.ts";
import { maskControls } from "../../observability/mask-controls.ts";
import { identifyServer, likelyCause } from "../../probes/likely-cause.ts";
import type { ProbeResult } from "../../probes/probe-result.ts";
import { type ProbeTarget, resolveContainerPort } from "../../probes/probe-target.ts";
import { runProbe } from "../../probes/run-probe.ts";
import { probedContainers } from "../../probes/worker/probe-manager.ts";
import {
  PROBE_KINDS,
  type ProbeKind,
  type ProbeTiming,
  probeOf,
  timingOf,
} from "../../probes/worker/probe-results.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/probe.ts";
import { coloured } from "../print-text.ts";
import { withTerminationSignal } from "../termination-signal.ts";
import { runtimeCommands } from "./probe-runtime.ts";
import { parseProbeUrl } from "./probe-url-argument.ts";
import { ProbeWatch, reportText } from "./probe-watch.ts";

/**
 * Runs a probe like the kubelet and prints the wire facts. Exit code 0 for Success and Warning, 1
 * otherwise.
 */
export async function run({ values, operands }: Invocation<typeof command.flags>): Promise<number> {
  const gates = gatesOf(values["feature-gates"]);
  const asked = await readAsked(operands, values, gates);
  try {
    return await runAsked(asked, values, gates);
  } finally {
    asked.close?.();
  }
}

async function runAsked(asked: AskedProbe, values: Values, gates: FeatureGates): Promise<number> {
  const { timeout = 0, period = 0 } = values;
  const timing: ProbeTiming = {
    ...asked.timing,
    ...(timeout > 0 && { timeoutSeconds: timeout / 1_000 }),
    ...(period > 0 && { periodSeconds: period / 1_000 }),
    successThreshold: values["success-threshold"] ?? asked.timing.successThreshold,
    failureThreshold: values["failure-threshold"] ?? asked.timing.failureThreshold,
  };
  const attempt = () =>
    runProbe(asked.handler, asked.target, {
      timeoutMs: timing.timeoutSeconds * 1_000,
      userAgentVersion: values["kubelet-version"],
      gates: {
        H2CContainerProbe: gates.isEnabled("H2CContainerProbe"),
        GRPCContainerProbeTLS: gates.isEnabled("GRPCContainerProbeTLS"),
      },
    });
  const what = describeHandler(asked.handler, asked.target.host);
  if (values.watch) {
    const stopping = new AbortController();
    const watch = new ProbeWatch({
      what,
      kind: asked.kind,
      timing,
      attempt,
      maxRounds: values.rounds,
      write: (text) => process.stdout.write(coloured(text, process.stdout)),
      isTerminal: process.stdout.isTTY === true,
    });
    return await withTerminationSignal(async (terminated) => {
      void terminated.then(() => stopping.abort());
      return (await watch.run(stopping.signal)) ? 0 : 1;
    });
  }
  const startMs = performance.now();
  const result = await attempt();
  const latencyMs = performance.now() - startMs;
  const report = reportText(what, result, latencyMs, await causeOf(asked, result));
  process.stdout.write(coloured(report, process.stdout));
  return result.error === undefined && (result.result === "Success" || result.result === "Warning") ? 0 : 1;
}

interface AskedProbe {
  /** Closes the runtime that runs commands. */
  readonly close?: () => void;
  readonly handler: ProbeHandler;
  readonly target: ProbeTarget;
  readonly kind: ProbeKind;
  readonly timing: ProbeTiming;
}

type Values = Invocation<typeof command.flags>["values"];

async function readAsked(
  operands: readonly string[],
  values: Values,
  gates: FeatureGates,
): Promise<AskedProbe> {
  const [url, ...more] = operands;
  const { filename: file, "runtime-endpoint": endpoint } = values;
  if (more.length > 0 || (url === undefined) === (file === undefined)) {
    throw new UsageError("one URL or one -f FILE is needed");
  }
  if (url !== undefined) {
    if (endpoint !== undefined) throw new UsageError(`--runtime-endpoint does not apply to ${url}`);
    const { handler, host } = parseProbeUrl(url, values);
    const kind = kindOf(values.kind ?? "readiness");
    return { handler, target: { host, containerPorts: [] }, kind, timing: timingOf({}) };
  }
  const { pod, container, kind, probe } = await readPodProbe(file ?? "", values, gates);
  const host = values["pod-ip"] ?? pod.status?.podIP;
  if (host === undefined && probe.exec === undefined) {
    throw new UsageError("--pod-ip IP is needed: the manifest has no status.podIP");
  }
  const name = `${pod.metadata.name}:${container.name}`;
  const target = { host: host ?? "", containerPorts: container.ports ?? [], name };
  if (probe.exec === undefined) {
    if (endpoint !== undefined)
      throw new UsageError("--runtime-endpoint is for exec probes, and this probe is not one");
    return { handler: probe, target, kind, timing: timingOf(probe) };
  }
  if (endpoint === undefined) {
    throw new UsageError("an exec probe needs --runtime-endpoint: the container's runtime runs the command");
  }
  const { namespace = "default", name: podName } = pod.metadata;
  const commands = await runtimeCommands(endpoint, { namespace, name: podName }, container.name);
  const environment = Array.isArray(container.env) ? container.env : [];
  return {
    handler: probe,
    target: { ...target, environment, runCommand: commands.runCommand },
    kind,
    timing: timingOf(probe),
    close: commands.close,
  };
}

/** Done only after failures, because finding the cause opens more connections. */
async function causeOf({ handler, target }: AskedProbe, result: ProbeResult): Promise<string | undefined> {
  if (handler.exec !== undefined) return undefined;
  if (result.result === "Success" || (result.error !== undefined && result.wire.status === undefined)) {
    return undefined;
  }
  const action = handler.httpGet ?? handler.tcpSocket;
  const host = action?.host || target.host;
  const port = resolveContainerPort((action ?? handler.grpc)?.port ?? 0, target.containerPorts);
  return likelyCause({ handler, result, server: await identifyServer(host, port) });
}

function kindOf(text: string): ProbeKind {
  switch (text.toLowerCase()) {
    case "liveness":
      return "Liveness";
    case "readiness":
      return "Readiness";
    case "startup":
      return "Startup";
  }
  throw new UsageError(`--kind must be liveness, readiness or startup, got ${JSON.stringify(text)}`);
}

function gatesOf(flag: string | undefined): FeatureGates {
  try {
    return FeatureGates.parse({ H2CContainerProbe: true, GRPCContainerProbeTLS: true }).with(flag ?? "");
  } catch (error) {
    if (!(error instanceof FeatureGateError)) throw error;
    throw new UsageError(error.message);
  }
}

interface PodProbe {
  readonly pod: Pod;
  readonly container: Container;
  readonly kind: ProbeKind;
  readonly probe: Probe;
}

/**
 * Reads a pod's probe from a manifest and validates it like the API server. Throws UsageError, or
 * ConfigurationError for the manifest.
 */
async function readPodProbe(
  file: string,
  wanted: {
    readonly container?: string | undefined;
    readonly kind?: string | undefined;
    readonly pod?: string | undefined;
  },
  gates: FeatureGates,
): Promise<PodProbe> {
  const warn = (line: string): void => void process.stderr.write(`${maskControls(line)}\n`);
  const objects = parseManifests(await readManifestFiles([file]), gates, warn);
  const pods = objects.filter((object): object is Pod => object.kind === "Pod");
  if (pods.length === 0) throw new UsageError(`${file} has no Pod: a Pod's own manifest is needed`);
  const pod = onlyOne(
    pods.filter(({ metadata }) => wanted.pod === undefined || metadata.name === wanted.pod),
    ({ metadata }) => metadata.name,
    "pod",
    file,
    wanted.pod,
  );
  const containers = probedContainers(pod).filter(
    ({ name }) => wanted.container === undefined || name === wanted.container,
  );
  const container = onlyOne(containers, ({ name }) => name, "container", file, wanted.container);
  const kinds = PROBE_KINDS.filter(
    (kind) =>
      probeOf(container, kind) !== undefined &&
      (wanted.kind === undefined || kind.toLowerCase() === wanted.kind.toLowerCase()),
  );
  const kind = onlyOne(kinds, (name) => name.toLowerCase(), "kind", file, wanted.kind);
  return { pod, container, kind, probe: probeOf(container, kind) ?? {} };
}

function onlyOne<T>(
  found: readonly T[],
  nameOf: (item: T) => string,
  flag: string,
  file: string,
  wanted: string | undefined,
): T {
  const [first, second] = found;
  const what = flag === "kind" ? "probe" : flag;
  if (first === undefined) {
    throw new UsageError(`${file} has no ${what}${wanted === undefined ? "" : ` ${JSON.stringify(wanted)}`}`);
  }
  if (second === undefined) return first;
  const names = found.map(nameOf).join(", ");
  throw new UsageError(`${file} has several ${what}s: choose one with --${flag} (${names})`);
}

/** The handler, in short notation. */
function describeHandler({ exec, httpGet, tcpSocket, grpc }: ProbeHandler, host: string): string {
  if (exec !== undefined) return "exec";
  if (tcpSocket !== undefined) return `tcpSocket ${tcpSocket.host || host}:${tcpSocket.port}`;
  if (grpc !== undefined) {
    const service = grpc.service ? ` service ${JSON.stringify(grpc.service)}` : "";
    return `grpc ${joinHostPort(host, grpc.port)}${service}${grpc.mode === undefined ? "" : ` ${grpc.mode}`}`;
  }
  const { scheme = "HTTP", port, path = "/", protocol } = httpGet ?? { port: 0 };
  const where = `${scheme.toLowerCase()}://${httpGet?.host || host}:${port}${path}`;
  return `httpGet ${where}${protocol === undefined ? "" : ` ${protocol}`}`;
}
