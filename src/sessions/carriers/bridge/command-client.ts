import type { Duplex } from "node:stream";
import type { RemoteCommandVersion, RequestedStreams } from "../../../../protocols/remotecommand/index.ts";
import type { SessionEnd } from "../../session-end.ts";

export type OutputStream = "stdout" | "stderr";

export interface CommandClientHandler {
  /** All that was asked for has been opened, once: output may be sent. */
  onReady(): void;
  /** Never empty; a view of what was received. */
  onInput(part: Uint8Array): void;
  onInputEnd(): void;
  /** A piece of the JSON values of the resize stream; never without a terminal. */
  onResize(part: Uint8Array): void;
  /**
   * The client ended or broke the connection, once. Never after `finish`. `endsInput`: it closed
   * properly, in a protocol that has no other end of input.
   */
  onEnd(end: SessionEnd, endsInput?: boolean): void;
}

/** What the client asked for, and in which protocol. */
export interface CommandClientOptions {
  readonly version: RemoteCommandVersion;
  readonly requested: RequestedStreams;
}

/** The client's end of an exec or attach, in whichever protocol it speaks. */
export interface CommandClient {
  readonly socket: Duplex;
  readonly isReady: boolean;
  /** Behind `finish`: the status was handed to the system. */
  readonly hasSentStatus: boolean;
  /** To be called once, before anything is received. */
  start(): void;
  receive(chunk: Uint8Array): void;
  tick(nowMs: number): void;
  /** Not before it is ready. The part is not empty. */
  sendOutput(stream: OutputStream, part: Uint8Array): void;
  /** The status, a JSON Status, in the client's protocol; then the end, after all output. */
  finish(status: Uint8Array): void;
  /** The end without a status: the client is gone. */
  leave(): void;
}
