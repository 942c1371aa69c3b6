import type { Http1Bounds } from "@sluice/client/internal/http/downstream/http1-server";

/** Every bound of a fake node. Times are in milliseconds. */
export interface FakeNodeLimits {
  /** How long a client may take to open the streams of an exec or attach, or of a forwarded connection. Past it the session ends. */
  readonly streamCreationTimeoutMs: number;
  /**
   * How long a target may accept no byte and so block other connections. Past it its connection is
   * reset.
   */
  readonly streamStallTimeoutMs: number;
  /**
   * Bytes of input that a process has not read yet. Past it the node stops reading the client's
   * connection.
   */
  readonly maxStdinBufferBytes: number;
  /**
   * Bytes that the target of one forwarded connection has not read yet. Past it the node stops
   * reading the client.
   */
  readonly maxForwardBufferBytes: number;
  /**
   * How long the client may take to finish after the target has ended; then, as in containerd, both
   * close. Infinity: a runtime that half-closes.
   */
  readonly forwardGraceMs: number;
  /**
   * Bytes that the client may send after its target has ended. Then the node stops reading the
   * connection, like spdystream with full queues.
   */
  readonly maxUnreadForwardBytes: number;
  /**
   * Bytes of a main process' output kept for `/containerLogs`; each line counts 64 bytes extra.
   * Past it the oldest lines are dropped.
   */
  readonly maxLogBytes: number;
  /**
   * Bytes of answers (to PINGs) queued for a client that sends but does not read. Past it the
   * client is disconnected.
   */
  readonly maxQueuedBytes: number;
  /** How long a client may neither send nor close after a session before it is disconnected. */
  readonly lingerIdleMs: number;
  /**
   * How long a client may keep sending without closing after a session before it is disconnected.
   */
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

/** A kubelet's bounds: heads of 1 MiB, idle connections for 90 s. The kubelet itself waits 4 h for a head. */
export const HTTP_BOUNDS: Http1Bounds = { maxHeaderBytes: 1024 * 1024, headMs: 30_000, keepAliveMs: 90_000 };

/** Go's io.Copy reads 32 KiB at a time, so real nodes never send longer DATA frames and messages. */
const MAX_CHUNK_BYTES = 32 * 1024;

/** Calls `send` with consecutive views of at most MAX_CHUNK_BYTES. */
export function sendInChunks(bytes: Uint8Array, send: (chunk: Uint8Array) => void): void {
  for (let offset = 0; offset < bytes.length; offset += MAX_CHUNK_BYTES) {
    send(bytes.subarray(offset, offset + MAX_CHUNK_BYTES));
  }
}
