import type { Duplex } from "node:stream";
import type { SessionEnd } from "@sluice/client/internal/sessions/session-end";

export interface CommandClientHandler {
  /** Called once, when the client has opened every requested stream: output may be sent. */
  onReady(): void;
  /** `part` is never empty. It is a view of received bytes. */
  onInput(part: Uint8Array): void;
  onInputEnd(): void;
  /** A piece of the resize stream's JSON. Called only for a terminal. */
  onResize(part: Uint8Array): void;
  /**
   * Called once if the client ends or breaks the connection, but not after `finish`. `endsInput`: the
   * client closed properly, in a protocol that ends stdin only with the connection.
   */
  onEnd(end: SessionEnd, endsInput?: boolean): void;
}

/** The client's end of an exec or attach, in any protocol. */
export interface CommandClient {
  readonly socket: Duplex;
  readonly isReady: boolean;
  /** True inside a message of the client: no other input may be typed in between. */
  readonly isInMessage: boolean;
  /** True after `finish` once the kernel has taken the status. */
  readonly hasSentStatus: boolean;
  /** Call once, before `receive`. */
  start(): void;
  receive(chunk: Uint8Array): void;
  tick(nowMs: number): void;
  /** Call only once the client is ready. `part` must not be empty. */
  sendOutput(stream: "stdout" | "stderr", part: Uint8Array): void;
  /** Sends the status, as JSON, in the client's protocol, then ends the session. Call after all output. */
  finish(status: Uint8Array): void;
  /** Ends without a status, because the client has left. */
  leave(): void;
}
