/** What an answer may make us hold. Checked before the memory is taken. */
export interface Http2Limits {
  /** The payload of one frame other than DATA, which is never held. Never announced: it is the protocol's default. */
  readonly maxFrameBytes: number;
  /**
   * All header fields of a stream, interim answers and trailers included, as RFC 9113 section 6.5.2 counts them (names, values, and 32
   * bytes each), and also as they come, so that neither compression nor its absence gets past it.
   */
  readonly maxHeaderListBytes: number;
  /** CONTINUATION frames of one header block, empty ones included. */
  readonly maxContinuationFrames: number;
}

export const defaultHttp2Limits: Http2Limits = {
  maxFrameBytes: 16_384,
  maxHeaderListBytes: 1024 * 1024,
  // Twice what a list of that length needs in frames of the default length.
  maxContinuationFrames: 128,
};
