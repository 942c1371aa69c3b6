/** What one WebSocket peer may send. Nothing here guards a buffer: payload is passed on in parts and never assembled. */
export interface WebSocketLimits {
  /** Payload of one frame, judged from its header before any payload is passed on. Beyond it: `frame-too-large` (1009). */
  readonly maxFrameBytes: number;
  /** Payload of one message, over all of its fragments: `message-too-large` (1009). `Infinity` for a relay. */
  readonly maxMessageBytes: number;
  /**
   * Data frames of one message: `too-many-fragments` (1008). Fragments of no or few bytes cost header work and never end
   * a message; `ws` 8.21 was given such a bound for that reason.
   */
  readonly maxFragments: number;
}

/** 32 MiB is what golang.org/x/net/websocket accepts, and so the most that any Kubernetes peer can expect to pass. */
export const defaultWebSocketLimits: WebSocketLimits = {
  maxFrameBytes: 32 * 1024 * 1024,
  maxMessageBytes: Number.POSITIVE_INFINITY,
  maxFragments: 16 * 1024,
};
