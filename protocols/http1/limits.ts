/** What one response may make us hold. Every bound is checked before the memory it guards is taken. */
export interface Http1Limits {
  /** Status lines and header lines of a response and of the interim ones before it; then its trailers alone (`header-block-too-large`). */
  readonly maxHeadBytes: number;
  /** Lines of one head, and of the trailers (`too-many-headers`). */
  readonly maxHeaders: number;
  /** A chunk's size with its extensions, which are not kept (`malformed-message`). */
  readonly maxChunkLineBytes: number;
}

/** Node's client takes 16 KiB and 2,000 lines; some applications' cookies need more bytes. */
export const defaultHttp1Limits: Http1Limits = {
  maxHeadBytes: 64 * 1024,
  maxHeaders: 2000,
  maxChunkLineBytes: 4 * 1024,
};

/**
 * What is read of responses that another reader would understand otherwise. `none`: nothing. `folded-lines`: lines folded by obs-fold
 * are joined (RFC 9112 section 5.2). `as-go`: whatever Go's client reads, for verdicts that have to be the same as Go's.
 */
export type Leniency = "none" | "folded-lines" | "as-go";
