import type { SessionEnd } from "../session-end.ts";

export type Pass = (bytes: Uint8Array) => void;

/**
 * Decodes what passes through a relay, for observers, and keeps no view of it. PINGs and their answers end here: a byte that meets a
 * node's closed socket takes its queued output back.
 */
export interface PassThroughDecoder {
  /** SPDY's heartbeats keep a session from being idle, as at the reference; WebSocket's do not. */
  readonly isSpdy?: boolean | undefined;
  /** Passes the chunk on, in pieces, behind what it tells observers, and without heartbeats. An end refuses it. */
  fromClient(chunk: Uint8Array, pass: Pass): SessionEnd | undefined;
  /** The same. Behind a call of `answerClient` that gave nothing it passes that answer as well, between two frames. */
  fromNode(chunk: Uint8Array, pass: Pass): SessionEnd | undefined;
  /** The answer to the client's newest PING, once, if the node's bytes stand between two frames. */
  answerClient?(): Uint8Array | undefined;
  /** The answer to the node's newest PING, once, if the client's bytes stand between two frames. */
  answerNode?(): Uint8Array | undefined;
  /** Heartbeats of ours, each at such a place; undefined elsewhere, and where the protocol has none for that side. */
  beatClient?(): Uint8Array | undefined;
  beatNode?(): Uint8Array | undefined;
  /**
   * The bytes that report a failure to the client, and end the session in its protocol, where the node
   * reported nothing; undefined where they cannot follow what was passed.
   */
  failureFrame?(message: string, end: SessionEnd): Uint8Array | undefined;
  /** Passes nothing of the node's behind the frame at hand. True: that is over, or the node's bytes have no frames. */
  stop?(): boolean;
  /** The node's farewell was passed to the client: nothing may follow it. */
  readonly hasNodeLeft?: boolean | undefined;
}
