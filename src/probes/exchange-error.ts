import { goDialErrorText } from "@sluice/client/internal/net/go-dial-error";

/** A connection or an exchange failed. The message uses Go's words, because the kubelet's Events quote it. */
export class ExchangeError extends Error {
  override readonly name = "ExchangeError";
  /** A new connection may succeed: Go's HTTP/2 client retries by itself. */
  readonly isRetryable: boolean;

  constructor(message: string, options: ErrorOptions & { isRetryable?: boolean } = {}) {
    super(message, options);
    this.isRetryable = options.isRetryable ?? false;
  }
}

/** The time limit passed first. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}

/**
 * Go's text for a broken socket: `read tcp LOCAL->REMOTE: read: connection reset by peer` once
 * connected, even for writes. Before that, `route` is undefined and the text names `address`.
 */
export function brokenText(error: Error, route: string | undefined, address: string): string {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (route === undefined || (syscall !== "read" && syscall !== "write")) {
    return goDialErrorText(error, address);
  }
  const isReset = code === "ECONNRESET" || code === "EPIPE";
  const reason = isReset ? "connection reset by peer" : (code ?? error.message).toLowerCase();
  return `read tcp ${route}: read: ${reason}`;
}
