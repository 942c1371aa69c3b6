/** Why an upstream could not be used. A closed list: each edge maps every code to its own status. */
type UpstreamErrorCode =
  | "aborted"
  | "invalid-request"
  | "dial-failed"
  | "request-timeout"
  | "closed-before-response"
  | "response-timeout"
  | "response-head-too-large"
  | "malformed-response"
  | "invalid-status"
  | "upgrade-refused"
  | "upgrade-mismatch"
  | "redirect-refused"
  | "truncated-body"
  | "internal-error";

/** An exception in this process ended an exchange. It has been reported, so the client gets no details. */
export function internalFailure(cause: unknown): UpstreamError {
  return new UpstreamError("internal-error", "the gateway failed to handle the exchange", { cause });
}

/**
 * An exchange with an upstream failed. The message is worded like Go's net/http, which kubectl and its
 * users match; it contains no payload, header value or credential.
 */
export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  readonly code: UpstreamErrorCode;
  /** With "dial-failed": TCP had connected, so TLS failed. */
  readonly hasConnected: boolean;
  /**
   * With "malformed-response": the protocol that the upstream speaks instead of HTTP/1 ("HTTP/2",
   * "TLS"); "HTTP/1" if it should have spoken HTTP/2.
   */
  readonly spoken: "HTTP/1" | "HTTP/2" | "TLS" | undefined;

  constructor(
    code: UpstreamErrorCode,
    message: string,
    options?: ErrorOptions & Partial<Pick<UpstreamError, "hasConnected" | "spoken">>,
  ) {
    super(message, options);
    this.code = code;
    this.hasConnected = options?.hasConnected ?? false;
    this.spoken = options?.spoken;
  }
}

export function abortedError(): UpstreamError {
  return new UpstreamError("aborted", "context canceled");
}
