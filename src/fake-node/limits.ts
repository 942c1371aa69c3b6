import type { Http1Bounds } from "../http/downstream/http1-server.ts";

/** Every bound of a fake node. Times are in milliseconds. */
export interface FakeNodeLimits {
  /** A client has this long to open the streams of an exec or attach, and both streams of a forwarded connection. */
  readonly streamCreationTimeoutMs: number;
  /** A forwarded connection whose target takes no byte for this long while it holds up the others is reset. */
  readonly streamStallTimeoutMs: number;
  /** Input that a process has not read yet; beyond it the client's connection is not read. */
  readonly maxStdinBufferBytes: number;
  /** The same for the target of one forwarded connection. */
  readonly maxForwardBufferBytes: number;
  /** What a client has, once the target of its connection has ended: containerd closes both then. Infinity: a runtime that half-closes. */
  readonly forwardGraceMs: number;
  /** Of a forwarded connection whose target has ended, in bytes: past it the client's connection is read no more, as spdystream's queues are full then. */
  readonly maxUnreadForwardBytes: number;
  /** Of what a main process wrote, for `/containerLogs`; past it the oldest lines are dropped. Each line counts 64 bytes more than it has. */
  readonly maxLogBytes: number;
  /** Answers (to PINGs) that may wait for a client that sends but does not read, before it is cut off. */
  readonly maxQueuedBytes: number;
  /** A client that neither sends nor closes for this long after the session is let go. */
  readonly lingerIdleMs: number;
  /** A client that keeps sending but never closes is let go after this long. */
  readonly lingerMaxMs: number;
}

export const defaultFakeNodeLimits: FakeNodeLimits = {
  streamCreationTimeoutMs: 30_000,
  streamStallTimeoutMs: 30_000,
  maxStdinBufferBytes: 1024 * 1024,
  forwardGraceMs: 1_000,
  maxUnreadForwardBytes: 51 * 32 * 1024,
  maxLogBytes: 1024 * 1024,
  maxForwardBufferBytes: 1024 * 1024,
  maxQueuedBytes: 4 * 1024 * 1024,
  lingerIdleMs: 60_000,
  lingerMaxMs: 600_000,
};

/** A kubelet's server: heads of 1 MiB, idle connections for 90 s. It waits 4 h for a head. */
export const HTTP_BOUNDS: Http1Bounds = { maxHeaderBytes: 1024 * 1024, headMs: 30_000, keepAliveMs: 90_000 };

/** Go's io.Copy reads 32 KiB at a time, so no peer has seen longer DATA frames and messages from a real node. */
export const MAX_CHUNK_BYTES: number = 32 * 1024;
