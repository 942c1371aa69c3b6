import { errored, failure, MAX_OUTPUT_BYTES, type ProbeResult, success } from "./probe-result.ts";

export interface CommandOutcome {
  readonly exitCode: number;
  /** stdout, then stderr. */
  readonly output: Uint8Array;
}

/**
 * Runs a command in the probed container. Rejects with CommandTimeoutError when it did not end in time, and with anything else
 * when the runtime could not run it or lost it.
 */
export type RunCommand = (
  command: readonly string[],
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
) => Promise<CommandOutcome>;

export class CommandTimeoutError extends Error {
  override readonly name = "CommandTimeoutError";

  /** In the words of the kubelet's runtime client. */
  constructor(command: readonly string[]) {
    super(`command "${command.join(" ")}" timed out`);
  }
}

export interface ExecOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** The kubelet's gate ExecProbeTimeout, on unless said otherwise; off: a time-out says nothing about the container. */
  readonly failsOnTimeout?: boolean | undefined;
}

/** Judges a command by its exit code. What the runtime could not do is an error, no verdict. */
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
