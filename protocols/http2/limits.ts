/** Memory bounds for one response. Each is checked before the memory is allocated. */
export interface Http2Limits {
  /**
   * The payload of one frame other than DATA, as the protocol's default, so it is not announced. Past
   * it a probe fails: `http2: frame too large`.
   */
  readonly maxFrameBytes: number;
  /**
   * All header fields of a stream, interim responses and trailers included; counted both as RFC
   * 9113 section 6.5.2 does (name, value and 32 bytes each) and in wire bytes, so neither tightly
   * compressed nor uncompressed headers evade it. Past it a probe fails: `http2: response header list larger than
   * advertised limit`.
   */
  readonly maxHeaderListBytes: number;
  /** CONTINUATION frames in one header block, empty ones included. Past it a probe fails as above. */
  readonly maxContinuationFrames: number;
}

export const defaultHttp2Limits: Http2Limits = {
  maxFrameBytes: 16_384,
  maxHeaderListBytes: 1024 * 1024,
  // Twice the frames that a list of that length needs at the default frame size.
  maxContinuationFrames: 128,
};
