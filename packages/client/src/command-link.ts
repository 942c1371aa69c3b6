import type { TerminalSize } from "@sluice/protocols/remotecommand";
import type { SessionError } from "./sessions/session-error.ts";

/**
 * Input for one send, in frames of at most 32 KiB as Kubernetes peers send them. Past it the rest
 * waits for the connection.
 */
export const MAX_PART_BYTES: number = 240 * 1024;

/**
 * How long a server that has received the session's end may take to close its connection. Past it
 * the client destroys it.
 */
export const MAX_CLOSE_MS = 1_000;

/** How the server's side of a session ended. */
export interface LinkEnd {
  /** The server ended the session itself, and properly. */
  readonly isOrderly: boolean;
  /** Used only if no status reports the command's result. */
  readonly error: SessionError;
}

export interface CommandLinkHandler {
  onOutput(stream: "stdout" | "stderr", part: Uint8Array): void;
  /** A part of the error stream's status. */
  onStatus(part: Uint8Array): void;
  /** The link accepts more input. */
  onDrain(): void;
  /** Called once; never after `close` or `abort`. */
  onEnd(end: LinkEnd): void;
}

/** The streams of one exec or attach, over either transport. */
export interface CommandLink {
  /**
   * Starts reading; nothing is delivered earlier. `reusesReads`: a part of the output may be
   * overwritten after `onOutput` returns.
   */
  start(reusesReads: boolean): void;
  /** At most MAX_PART_BYTES. False asks the caller to wait for `onDrain`. */
  sendInput(part: Uint8Array): boolean;
  /**
   * Ends the remote command's stdin. Does nothing in protocols without such a message (WebSocket
   * before v5).
   */
  endInput(): void;
  resize(size: TerminalSize): void;
  /** Stops reading from the server until `resume`. */
  pause(): void;
  resume(): void;
  /** Ends the session properly. */
  close(): void;
  /** Calls back once the connection is closed, soon after `close` and `onEnd`. */
  onceClosed(done: () => void): void;
  /** Breaks the session, so that the server does not see a proper end. */
  abort(): void;
}
