/**
 * Bounds for one WebSocket peer. They protect no buffer, because payload is passed on in parts and never
 * assembled.
 */
export interface WebSocketLimits {
  /**
   * Payload of one frame, checked in its header before any payload is passed on. Larger: `frame-too-large` (1009).
   */
  readonly maxFrameBytes: number;
  /** Payload of one message, over all of its fragments: `message-too-large` (1009). `Infinity` for a relay. */
  readonly maxMessageBytes: number;
  /**
   * Data frames in one message: `too-many-fragments` (1008). Tiny fragments cost header work and never end a
   * message; `ws` 8.21 added such a bound for that reason.
   */
  readonly maxFragments: number;
}

/** golang.org/x/net/websocket accepts 32 MiB, so no Kubernetes peer can expect to send more. */
export const defaultWebSocketLimits: WebSocketLimits = {
  maxFrameBytes: 32 * 1024 * 1024,
  maxMessageBytes: Number.POSITIVE_INFINITY,
  maxFragments: 16 * 1024,
};
