/** Warning counts as Success, and Unknown without an error as Failure; only Events distinguish them. */
type ProbeVerdict = "Success" | "Warning" | "Failure" | "Unknown";

export interface ProbeResult {
  readonly result: ProbeVerdict;
  /**
   * The kubelet's text, as its Events quote it: a body, a reason, or nothing. At most 10 KiB,
   * except for reasons.
   */
  readonly message: string;
  /** Set if the probe could not run or be judged. The worker discards such a round and retries at once. */
  readonly error?: string;
  readonly wire: WireFacts;
}

/** What the probe observed on the wire, for diagnosis. Never part of a result. */
export interface WireFacts {
  /** The protocol that the server really spoke, once it is known. */
  protocol?: "tcp" | "http/1.1" | "h2c" | "h2";
  /** The last response's HTTP status. */
  status?: number;
  /** The gRPC status code's name. */
  grpcStatus?: string;
  /** The server's unverified certificate: subject and expiry. */
  certificate?: string;
  /**
   * Go's words for the last failed connection to a gRPC server; the message itself names only the
   * deadline.
   */
  lastAttempt?: string;
  /** The probe has `grpc.mode: TLS`, but the gate is off. */
  isModeIgnored?: true;
  /** Hosts and ports of the followed redirects. */
  redirects?: string[];
}

/**
 * The part of a probe's body, or of a command's output, that is kept, as in the kubelet. Past it
 * the rest is not read, and the verdict stands.
 */
export const MAX_OUTPUT_BYTES = 10 * 1024;

export function success(message: string, wire: WireFacts): ProbeResult {
  return { result: "Success", message, wire };
}

export function warning(message: string, wire: WireFacts): ProbeResult {
  return { result: "Warning", message, wire };
}

export function failure(message: string, wire: WireFacts): ProbeResult {
  return { result: "Failure", message, wire };
}

/** The round says nothing about the container. `result` is only for display. */
export function errored(
  error: string,
  wire: WireFacts = {},
  result: "Unknown" | "Failure" = "Unknown",
): ProbeResult {
  return { result, message: "", error, wire };
}

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

/** The time limit ended first. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}
