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
