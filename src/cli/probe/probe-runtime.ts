import { DEFAULT_RUNTIME_ENDPOINT } from "../../config/sections/kubelet-listener.ts";
import { CriRuntime } from "../../cri/cri-runtime.ts";
import { findRunningContainer, findSandbox } from "../../cri/pods.ts";
import { commandsIn } from "../../probes/container-runtime.ts";
import type { RunCommand } from "../../probes/exec-probe.ts";
import { UsageError } from "../command.ts";

interface RuntimeCommands {
  readonly runCommand: RunCommand;
  close(): void;
}

const CALL_TIMEOUT_MS = 10_000;
/** A runtime truncates a command's output at 16 MiB per stream. */
const MAX_MESSAGE_BYTES = 40 * 1024 * 1024;

/**
 * Runs commands in a pod's container through this node's container runtime. Looks the container up
 * each time, because a restart replaces it. Throws UsageError unless the endpoint is a unix socket.
 */
export async function runtimeCommands(
  endpoint: string,
  pod: { readonly namespace: string; readonly name: string },
  containerName: string,
): Promise<RuntimeCommands> {
  const runtime = await openRuntime(endpoint);
  return {
    runCommand: async (command, options) => {
      const sandbox = await findSandbox(runtime, { namespace: pod.namespace, pod: pod.name });
      const { id } = await findRunningContainer(runtime, sandbox, containerName);
      return commandsIn(runtime, id)(command, options);
    },
    close: () => runtime.close(),
  };
}

/** Throws UsageError unless the endpoint is a unix socket. */
export async function openRuntime(endpoint: string): Promise<CriRuntime> {
  if (!/^unix:\/\/\/./.test(endpoint)) {
    throw new UsageError(`--runtime-endpoint must be a unix socket such as ${DEFAULT_RUNTIME_ENDPOINT}`);
  }
  return CriRuntime.open({ endpoint, callTimeoutMs: CALL_TIMEOUT_MS, maxMessageBytes: MAX_MESSAGE_BYTES });
}
