/** The kinds of protocol violation that get a message of their own. */
export type Http2Fault =
  /** Ends the connection (RFC 9113 section 5.4.1). */
  | "connection"
  /** Ends the stream alone (section 5.4.2). */
  | "stream"
  /** A frame exceeds our limit. */
  | "frame-too-large"
  /** A frame exceeds our limit, and the bytes look like an HTTP/1.1 response. */
  | "looks-like-http1"
  /** Header fields exceed our limit. */
  | "header-list-too-large";

/** The peer violated the protocol. The object that threw this is finished and must get no more bytes. */
export class Http2Error extends Error {
  override readonly name = "Http2Error";
  readonly fault: Http2Fault;
  /** An `ERROR_CODE`. */
  readonly code: number;

  /** `message` describes the fault and never quotes a value. */
  constructor(fault: Http2Fault, code: number, message: string) {
    super(message);
    this.fault = fault;
    this.code = code;
  }
}
