export interface WebSocketLimits {
  /** Declared payload of one frame, checked from its header. */
  readonly maxFrameBytes: number;
  /** Payload of one message over all its frames; a relay that holds nothing may allow Infinity. */
  readonly maxMessageBytes: number;
  /** Frames of one message: empty fragments cost their sender nothing. */
  readonly maxFragments: number;
}

/** x/net's server takes frames of up to 32 MiB. */
export const defaultWebSocketLimits: WebSocketLimits = {
  maxFrameBytes: 32 * 1024 * 1024,
  maxMessageBytes: Number.POSITIVE_INFINITY,
  maxFragments: 10_000,
};
