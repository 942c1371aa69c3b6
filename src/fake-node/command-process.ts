import type { RequestedStreams, TerminalSize } from "../../protocols/remotecommand/index.ts";

export type OutputStream = "stdout" | "stderr";

/** How a command ended. `failed`: it never ran; the message is the runtime's. */
export type CommandExit =
  | { readonly type: "exited"; readonly code: number }
  | { readonly type: "failed"; readonly message: string };

export interface ProcessEnvironment {
  readonly hostname: string;
}

export interface CommandLine {
  readonly argv: readonly string[];
  readonly requested: RequestedStreams;
  readonly environment: ProcessEnvironment;
  readonly maxStdinBufferBytes: number;
  /** What the client said of its terminal before the command was started. */
  readonly size?: TerminalSize | undefined;
}

export interface CommandProcessHandler {
  /** The part is never reused by the process' side. */
  onOutput(stream: OutputStream, part: Uint8Array): void;
  onOutputEnd(stream: OutputStream): void;
  /** The process took everything that was written, or will take nothing any more. */
  onStdinDrain(): void;
  /** Once, after the last output. */
  onExit(exit: CommandExit): void;
}

/** A running command, or what attach sees of one. */
export interface CommandProcess {
  /** False: enough is buffered, write no more until onStdinDrain. Input that the process does not want is dropped. */
  writeStdin(part: Uint8Array): boolean;
  endStdin(): void;
  resize(size: TerminalSize): void;
  /** The process blocks once the pipe is full. */
  pauseOutput(): void;
  resumeOutput(): void;
  /** The client is gone: ends the command as a runtime does. onExit follows, unless the command ignores it. */
  hangUp(): void;
  /** Ends it without asking, and resolves when it is gone. */
  kill(): Promise<void>;
}

/** What the process of a container sees of the world: nothing of this program's own environment but the path. */
export function environmentOf({ hostname }: ProcessEnvironment): Record<string, string> {
  return {
    PATH: process.env.PATH ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: process.env.HOME ?? "/",
    HOSTNAME: hostname,
  };
}

/** The working directory of images that name none. */
export const WORKING_DIRECTORY = "/";
