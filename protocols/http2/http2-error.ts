/** The kinds of protocol violation that get a message of their own. */
export type Http2Fault =
  /** Ends the connection (RFC 9113 section 5.4.1). */
  | "connection"
  /** Ends only the stream (section 5.4.2). */
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

/** RFC 9113 section 7. */
export const ERROR_CODE = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
  INADEQUATE_SECURITY: 12,
  HTTP_1_1_REQUIRED: 13,
} as const;

const NAMES = Object.keys(ERROR_CODE);

/** `REFUSED_STREAM`; unknown codes keep their number. */
export function errorCodeName(code: number): string {
  return NAMES[code] ?? `unknown error code 0x${code.toString(16)}`;
}
