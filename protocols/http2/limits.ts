/** Length, type, flags, stream. */
export const FRAME_HEADER_BYTES = 9;
/** The protocol's defaults: every peer accepts them until it announces others (RFC 9113 section 6.5.2). */
export const DEFAULT_MAX_FRAME_BYTES = 16_384;
export const DEFAULT_WINDOW_BYTES = 65_535;
export const MAX_WINDOW_BYTES = 0x7fff_ffff;

/** RFC 9113 section 6. */
export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

export const FLAGS = { ACK: 1, END_STREAM: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 0x20 } as const;

/** RFC 9113 section 6.5.2. */
export const SETTING = {
  HEADER_TABLE_SIZE: 1,
  ENABLE_PUSH: 2,
  MAX_CONCURRENT_STREAMS: 3,
  INITIAL_WINDOW_SIZE: 4,
  MAX_FRAME_SIZE: 5,
  MAX_HEADER_LIST_SIZE: 6,
} as const;

/** Memory bounds for one response. Each is checked before the memory is allocated. */
export interface Http2Limits {
  /**
   * Bytes in the payload of one frame other than DATA; the protocol's default, so it is not
   * announced. Past it a probe fails: `http2: frame too large`.
   */
  readonly maxFrameBytes: number;
  /**
   * All header fields of a stream, interim responses and trailers included; counted both as RFC
   * 9113 section 6.5.2 does (name, value and 32 bytes each) and in wire bytes, so neither tightly
   * compressed nor uncompressed headers evade it. Past it a probe fails: `http2: response header list larger than
   * advertised limit`.
   */
  readonly maxHeaderListBytes: number;
  /**
   * CONTINUATION frames in one header block, including empty ones. Past it a probe fails as above.
   */
  readonly maxContinuationFrames: number;
}

export const defaultHttp2Limits: Http2Limits = {
  maxFrameBytes: 16_384,
  maxHeaderListBytes: 1024 * 1024,
  // Twice the frames that a list of that length needs at the default frame size.
  maxContinuationFrames: 128,
};
