import type { TerminalSize } from "../../protocols/remotecommand/index.ts";
import type { SessionError } from "./session-error.ts";

/** What a link takes of the input at a time; it goes in frames of at most 32 KiB, which is what Kubernetes' peers send themselves. */
export const MAX_PART_BYTES: number = 240 * 1024;

/** A server that has what ends the session, and does not close its connection, is waited for so long. */
export const MAX_CLOSE_MS = 1_000;

/** How the far end of a command's session ended. */
export interface LinkEnd {
  /** The server ended the session itself, and properly. */
  readonly isOrderly: boolean;
  /** Counts only where no status says how the command ended. */
  readonly error: SessionError;
}

export interface CommandLinkHandler {
  onOutput(stream: "stdout" | "stderr", part: Uint8Array): void;
  /** A piece of what the error stream says. */
  onStatus(part: Uint8Array): void;
  /** What was sent has been taken: more may be sent. */
  onDrain(): void;
  /** Once; never after `close` or `abort`. */
  onEnd(end: LinkEnd): void;
}

/** The streams of one exec or attach, over either transport. */
export interface CommandLink {
  /** Starts; nothing is delivered before. `reusesReads`: parts of the output are not looked at any more when `onOutput` returns. */
  start(reusesReads: boolean): void;
  /** At most MAX_PART_BYTES. False: more should wait for `onDrain`. */
  sendInput(part: Uint8Array): boolean;
  /** The remote command's stdin ends. No effect where the protocol cannot say it (WebSocket before v5). */
  endInput(): void;
  resize(size: TerminalSize): void;
  /** Stops reading from the server, until `resume`. */
  pause(): void;
  resume(): void;
  /** Ends the session properly. */
  close(): void;
  /** Calls back when the connection is closed, which it is soon behind `close` and `onEnd`. */
  onceClosed(done: () => void): void;
  /** Breaks the session: the server must not take it for a proper end. */
  abort(): void;
}
