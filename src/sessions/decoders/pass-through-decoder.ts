import type { SessionEnd } from "@sluice/client/internal/sessions/session-end";
import type { EndObserver } from "../observers/end-observer.ts";

export type Pass = (bytes: Uint8Array) => void;

/** Where the node's forwarded bytes end. */
export interface PassedEnd {
  readonly isInFrame: boolean;
  readonly isInMessage: boolean;
}

/** The node's report of a command's end, which a relay may keep from the client for a while. */
export interface KeptReport {
  readonly hasBegun: boolean;
  /** Called once all bytes before the report were passed on, and none of the report. */
  begin(passed: PassedEnd): void;
  /** Where the client's bytes end before it gets any of the report. */
  readonly kept: PassedEnd | undefined;
}

/**
 * Decodes a relay's bytes for observers, and keeps no view of them. PINGs and their answers end here,
 * because a byte sent to a node's closed socket discards the output that the node has queued.
 */
export interface PassThroughDecoder {
  /** SPDY heartbeats keep a session from being idle, as at the reference. WebSocket heartbeats do not. */
  readonly isSpdy?: boolean | undefined;
  /**
   * Notifies observers, then passes the chunk on in pieces, without heartbeats. If it returns an end,
   * the session is refused.
   */
  fromClient(chunk: Uint8Array, pass: Pass): SessionEnd | undefined;
  /**
   * The same for the node. If `answerClient` had to wait for the end of a frame, its answer is passed
   * here.
   */
  fromNode(chunk: Uint8Array, pass: Pass): SessionEnd | undefined;
  /** The answer to the client's newest PING, once, if the node's bytes are between two frames. */
  answerClient?(): Uint8Array | undefined;
  /** The answer to the node's newest PING, once, if the client's bytes are between two frames. */
  answerNode?(): Uint8Array | undefined;
  /**
   * A heartbeat of the gateway's own, between two frames; undefined within a frame, or if the protocol
   * has none for that side.
   */
  beatClient?(): Uint8Array | undefined;
  beatNode?(): Uint8Array | undefined;
  /** False once the client has ended stdin. Absent: the protocol has none. */
  readonly readsInput?: boolean | undefined;
  /**
   * Encodes a joiner's input for the node, after observers have seen it. A returned end refuses the
   * session. Undefined while the client is within a message or frame.
   */
  input?(bytes: Uint8Array, by: string): Uint8Array | SessionEnd | undefined;
  /**
   * Encodes text for the client's terminal. Undefined within a message or frame of the node, and
   * once its report has begun.
   */
  outputFrame?(text: Uint8Array): Uint8Array | undefined;
  /**
   * Bytes that report a failure to the client in the session's protocol, and end the session, if the
   * node reported nothing; undefined if they cannot follow the bytes already passed.
   */
  failureFrame?(message: string, end: SessionEnd): Uint8Array | undefined;
  /** Tells `report` where the node's report of the end begins. A failure may replace it until it is passed on. */
  keepReport?(report: KeptReport): void;
  /**
   * Stops passing the node's bytes after its present frame. True: that frame is complete, or the bytes
   * have no frames.
   */
  stop?(): boolean;
  /** The client has received the node's farewell (Close or GOAWAY): nothing may follow it. */
  readonly hasNodeLeft?: boolean | undefined;
}

/** How a relay understands the bytes that it passes. */
export interface RelayedSession {
  /** Decodes the bytes for the lifecycle's observers. Absent: the bytes are opaque. */
  readonly decoder?: PassThroughDecoder | undefined;
  /** Learns from the decoder how the session ends. Absent: the node's FIN completes it. */
  readonly ends?: EndObserver | undefined;
  /** True if the node closes its socket after its result while output is still queued. */
  readonly closesBehindResult?: boolean | undefined;
  readonly isTerminal?: boolean | undefined;
}
