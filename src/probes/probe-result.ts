/** Warning counts as Success, and Unknown without an error as Failure; both are told apart in Events only. */
export type ProbeVerdict = "Success" | "Warning" | "Failure" | "Unknown";

export interface ProbeResult {
  readonly result: ProbeVerdict;
  /** The kubelet's text, as its Events quote it: a body, a reason, or nothing. At most 10 KiB, reasons aside. */
  readonly message: string;
  /** Set where the probe could not be carried out or judged: such a round is thrown away, and tried again at once. */
  readonly error?: string;
  readonly wire: WireFacts;
}

/** What was seen on the wire, for diagnosis. Never part of a result. */
export interface WireFacts {
  /** The protocol that was really spoken, once it was known. */
  protocol?: "tcp" | "http/1.1" | "h2c" | "h2";
  /** The last answer's HTTP status. */
  status?: number;
  /** The gRPC status code's name. */
  grpcStatus?: string;
  /** The server's unverified certificate: subject and expiry. */
  certificate?: string;
  /** Why the last attempt to connect to a gRPC server failed, in Go's words: the message states the deadline only. */
  lastAttempt?: string;
  /** `grpc.mode: TLS` was asked for, and its gate is off. */
  isModeIgnored?: true;
  /** Hosts and ports of the redirects that were followed. */
  redirects?: string[];
}

/** As much of a body, or of a command's output, as the kubelet keeps. */
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

/** The round says nothing about the container. `result` is only ever shown. */
export function errored(
  error: string,
  wire: WireFacts = {},
  result: "Unknown" | "Failure" = "Unknown",
): ProbeResult {
  return { result, message: "", error, wire };
}
