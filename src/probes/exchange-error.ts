import { goDialErrorText } from "../net/go-dial-error.ts";

/** A connection or an exchange failed; the message is worded as Go words it, because the kubelet's Events quote it. */
export class ExchangeError extends Error {
  override readonly name = "ExchangeError";
  /** A new connection may well be answered: Go's HTTP/2 client tries again by itself. */
  readonly isRetryable: boolean;

  constructor(message: string, options: ErrorOptions & { isRetryable?: boolean } = {}) {
    super(message, options);
    this.isRetryable = options.isRetryable ?? false;
  }
}

/** The time was over first. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}

/**
 * Go's text for a broken socket: `read tcp LOCAL->REMOTE: read: connection reset by peer` once
 * connected, for writes too. Before that `route` is undefined and `address` was dialled.
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
