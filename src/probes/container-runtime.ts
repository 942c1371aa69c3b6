import type { CriRuntime } from "../cri/cri-runtime.ts";
import { RuntimeError } from "../cri/runtime-error.ts";
import { CommandTimeoutError, type RunCommand } from "./exec-probe.ts";
import type { RestartRequest } from "./pods/restart.ts";

/** Strips the scheme from the API's `containerd://<id>`. */
function runtimeIdOf(containerId: string): string {
  return containerId.replace(/^[a-z0-9.-]+:\/\//, "");
}

/**
 * Runs probe commands with the runtime's ExecSync; stdout comes before stderr. The runtime's own
 * time limit is in whole seconds.
 */
export function commandsIn(runtime: Pick<CriRuntime, "execSync">, containerId: string): RunCommand {
  return async (command, { timeoutMs }) => {
    try {
      const seconds = Math.ceil(timeoutMs / 1_000);
      const { exitCode, stdout, stderr } = await runtime.execSync(runtimeIdOf(containerId), command, seconds);
      return { exitCode, output: Buffer.concat([stdout, stderr]) };
    } catch (error) {
      const isLate = error instanceof RuntimeError && error.code === "DeadlineExceeded";
      throw isLate ? new CommandTimeoutError(command) : error;
    }
  };
}

/** Ends a container whose probes failed. The owner of the pod's sandbox starts the next one. */
export async function endContainer(
  runtime: Pick<CriRuntime, "stopContainer">,
  { containerId, gracePeriodSeconds }: RestartRequest,
): Promise<void> {
  await runtime.stopContainer(runtimeIdOf(containerId), gracePeriodSeconds);
}
