import type { RequestedStreams, TerminalSize } from "@sluice/protocols/remotecommand";

/** How a command ended. `failed`: it never ran; the message is the runtime's. */
export type CommandExit =
  | { readonly type: "exited"; readonly code: number }
  | { readonly type: "failed"; readonly message: string };

export interface CommandLine {
  readonly argv: readonly string[];
  readonly requested: RequestedStreams;
  readonly hostname: string;
  readonly maxStdinBufferBytes: number;
  /** The terminal size that the client sent before the command started. */
  readonly size?: TerminalSize | undefined;
}

export interface CommandProcessHandler {
  /** The process never uses the part again. */
  onOutput(stream: "stdout" | "stderr", part: Uint8Array): void;
  onOutputEnd(stream: "stdout" | "stderr"): void;
  /** The process has read all input, or will read no more. */
  onStdinDrain(): void;
  /** Called once, after the last output. */
  onExit(exit: CommandExit): void;
}

/** A running command, or an attached client's view of one. */
export interface CommandProcess {
  /**
   * False if enough is buffered: write no more until onStdinDrain. Drops input that the process
   * does not want.
   */
  writeStdin(part: Uint8Array): boolean;
  endStdin(): void;
  resize(size: TerminalSize): void;
  /** The process blocks once the pipe is full. */
  pauseOutput(): void;
  resumeOutput(): void;
  /**
   * The client is gone: ends the command as a runtime would. onExit follows, unless the command
   * ignores the signal.
   */
  hangUp(): void;
  /** Kills the command, and resolves when it has ended. */
  kill(): Promise<void>;
}

/** A container process' environment; only PATH is inherited from this program. */
export function environmentOf(hostname: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: process.env.HOME ?? "/",
    HOSTNAME: hostname,
  };
}

/** The working directory if the image sets none. */
export const WORKING_DIRECTORY = "/";
