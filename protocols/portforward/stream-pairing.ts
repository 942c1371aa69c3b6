import type { PortForwardStreamHeaders, PortForwardStreamType } from "./stream-headers.ts";

export const DEFAULT_PAIR_TIMEOUT_MS = 30_000;

/** The two streams of one forwarded connection. `port` is the data stream's. */
export interface StreamPair<Stream> {
  readonly requestId: string;
  readonly port: number;
  readonly error: Stream;
  readonly data: Stream;
}

/** A pair that still lacks its second stream. */
export interface PendingPair<Stream> {
  readonly requestId: string;
  readonly error: Stream | undefined;
  readonly data: Stream | undefined;
}

export type PairingResult<Stream> =
  | { readonly type: "waiting" }
  | { readonly type: "paired"; readonly pair: StreamPair<Stream> }
  /** Send `text` on the pending pair's error stream, if there is one. The new stream is rejected. */
  | { readonly type: "duplicate"; readonly text: string; readonly pending: PendingPair<Stream> };

interface Waiting<Stream> {
  readonly streams: Map<PortForwardStreamType, { stream: Stream; port: number }>;
  readonly sinceMs: number;
}

/**
 * Pairs the error and the data stream of each connection. A complete pair is forgotten, so its
 * request id may be reused. The session's limit of open streams bounds the pending pairs.
 */
export class StreamPairing<Stream> {
  readonly #timeoutMs: number;
  readonly #waiting = new Map<string, Waiting<Stream>>();

  constructor(pairTimeoutMs: number = DEFAULT_PAIR_TIMEOUT_MS) {
    this.#timeoutMs = pairTimeoutMs;
  }

  add(headers: PortForwardStreamHeaders, stream: Stream, nowMs: number): PairingResult<Stream> {
    const { requestId, streamType, port } = headers;
    const waiting = this.#waiting.get(requestId) ?? { streams: new Map(), sinceMs: nowMs };
    if (waiting.streams.has(streamType)) {
      const text = `error processing stream for request ${requestId}: ${streamType} stream already assigned`;
      return { type: "duplicate", text, pending: pendingOf(requestId, waiting) };
    }
    waiting.streams.set(streamType, { stream, port });
    const error = waiting.streams.get("error");
    const data = waiting.streams.get("data");
    if (error === undefined || data === undefined) {
      this.#waiting.set(requestId, waiting);
      return { type: "waiting" };
    }
    this.#waiting.delete(requestId);
    return { type: "paired", pair: { requestId, port: data.port, error: error.stream, data: data.stream } };
  }

  /** Forgets a stream that ended while it waited. */
  remove(stream: Stream): void {
    for (const [requestId, { streams }] of this.#waiting) {
      for (const [streamType, entry] of streams) if (entry.stream === stream) streams.delete(streamType);
      if (streams.size === 0) this.#waiting.delete(requestId);
    }
  }

  /**
   * Removes the pairs that have waited too long; send `timeoutText` on their error stream, if there
   * is one.
   */
  expire(nowMs: number): PendingPair<Stream>[] {
    const expired: PendingPair<Stream>[] = [];
    for (const [requestId, waiting] of this.#waiting) {
      if (nowMs - waiting.sinceMs < this.#timeoutMs) continue;
      this.#waiting.delete(requestId);
      expired.push(pendingOf(requestId, waiting));
    }
    return expired;
  }

  get pendingCount(): number {
    return this.#waiting.size;
  }
}

/** `connection` names the connection in the text; Kubernetes prints a memory address there. */
export function timeoutText(connection: string, requestId: string): string {
  return `(conn=${connection}, request=${requestId}) timed out waiting for streams`;
}

function pendingOf<Stream>(requestId: string, waiting: Waiting<Stream>): PendingPair<Stream> {
  return {
    requestId,
    error: waiting.streams.get("error")?.stream,
    data: waiting.streams.get("data")?.stream,
  };
}
