/** Which of its promises a peer broke, as far as the difference is worth a text of its own. */
export type Http2Fault =
  /** The connection is over (RFC 9113 section 5.4.1). */
  | "connection"
  /** Only the stream is (section 5.4.2). */
  | "stream"
  /** A frame is longer than we take. */
  | "frame-too-large"
  /** The same, and the bytes begin as an HTTP/1.1 response does. */
  | "looks-like-http1"
  /** Header fields are more than we take. */
  | "header-list-too-large";

/** The peer broke the protocol. What threw it is finished and must not be fed again. */
export class Http2Error extends Error {
  override readonly name = "Http2Error";
  readonly fault: Http2Fault;
  /** An `ERROR_CODE`. */
  readonly code: number;

  /** `message` says what was wrong and never quotes a value. */
  constructor(fault: Http2Fault, code: number, message: string) {
    super(message);
    this.fault = fault;
    this.code = code;
  }
}
