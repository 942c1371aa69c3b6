/** Why an upstream could not be used. A closed list: each edge maps every code to a status of its own. */
export type UpstreamErrorCode =
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

/** An exception in this process ended an exchange. It has been reported: the client learns no details. */
export function internalFailure(cause: unknown): UpstreamError {
  return new UpstreamError("internal-error", "the gateway failed to handle the exchange", { cause });
}

/**
 * An exchange with an upstream failed. The message is worded as in Go's net/http, which kubectl and its users match; it holds no
 * payload, header value or credential.
 */
export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  readonly code: UpstreamErrorCode;
  /** With "dial-failed": TCP had connected, so it was TLS that failed. */
  readonly hasConnected: boolean;
  /** With "malformed-response": what it speaks instead of HTTP/1 ("HTTP/2", "TLS"), or that it does not speak HTTP/2 ("HTTP/1"). */
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
