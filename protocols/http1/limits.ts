/** Memory bounds for one response. Each is checked before the memory is allocated. */
export interface Http1Limits {
  /**
   * Status lines and headers of a response and its interim responses, and again its trailers. Past it:
   * `header-block-too-large`; the gateway answers 502.
   */
  readonly maxHeadBytes: number;
  /** Lines in one head, and in the trailers. Past it: `too-many-headers`; the gateway answers 502. */
  readonly maxHeaders: number;
  /** A chunk's size line with its extensions. Past it: `malformed-message`; the gateway answers 502, or cuts the response. */
  readonly maxChunkLineBytes: number;
}

/** Node's client allows 16 KiB and 2,000 lines; some applications' cookies need more bytes. */
export const defaultHttp1Limits: Http1Limits = {
  maxHeadBytes: 64 * 1024,
  maxHeaders: 2000,
  maxChunkLineBytes: 4 * 1024,
};

/**
 * Responses to accept although readers disagree about them. `none`: refuses them. `folded-lines`: joins lines
 * folded by obs-fold (RFC 9112 section 5.2). `as-go`: reads whatever Go's client reads, for verdicts that must
 * match Go's.
 */
export type Leniency = "none" | "folded-lines" | "as-go";
