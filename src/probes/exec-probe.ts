import { errored, failure, MAX_OUTPUT_BYTES, type ProbeResult, success } from "./probe-result.ts";

interface CommandOutcome {
  readonly exitCode: number;
  /** stdout, then stderr. */
  readonly output: Uint8Array;
}

/**
 * Runs a command in the probed container. Rejects with CommandTimeoutError at the time limit, and
 * with another error if the runtime could not run the command or lost track of it.
 */
export type RunCommand = (
  command: readonly string[],
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
) => Promise<CommandOutcome>;

export class CommandTimeoutError extends Error {
  override readonly name = "CommandTimeoutError";

  /** Uses the words of the kubelet's runtime client. */
  constructor(command: readonly string[]) {
    super(`command "${command.join(" ")}" timed out`);
  }
}

interface ExecOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /**
   * The kubelet's gate ExecProbeTimeout, on by default. If it is off, a timeout says nothing about
   * the container.
   */
  readonly failsOnTimeout?: boolean | undefined;
}

/** Judges a command by its exit code. A failure of the runtime is an error, not a verdict. */
export async function probeExec(
  command: readonly string[],
  run: RunCommand,
  { timeoutMs, signal, failsOnTimeout = true }: ExecOptions,
): Promise<ProbeResult> {
  try {
    const { exitCode, output } = await run(command, { timeoutMs, signal });
    const text = Buffer.from(output.subarray(0, MAX_OUTPUT_BYTES)).toString();
    return exitCode === 0 ? success(text, {}) : failure(text, {});
  } catch (error) {
    const { message } = error instanceof Error ? error : new Error(String(error));
    if (error instanceof CommandTimeoutError && failsOnTimeout) return failure(message, {});
    return errored(message);
  }
}
