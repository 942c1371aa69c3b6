import type { ProbeResult } from "../probe-result.ts";
import type { ProbeKind } from "./probe-results.ts";

/**
 * Maps patterns in probe messages to words for the log. The messages quote bodies, outputs, paths
 * and host names, which must not appear in a log.
 */
const REASONS: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/connection refused/, "connection refused"],
  [/no such host/, "no such host"],
  [/no route to host|network is unreachable/, "no route to host"],
  [/connection reset|broken pipe/, "connection reset"],
  [/deadline exceeded|timeout|timed out|within \d/i, "timed out"],
  [/x509|tls:|certificate/, "TLS handshake failed"],
  [/malformed HTTP|server gave HTTP/, "the server does not speak HTTP there"],
  [/no h2 by ALPN/, "TLS without h2"],
  [/\bEOF\b/, "the server closed the connection"],
];

/** The TLS alerts of servers that require a client certificate: TLS 1.3's, and Go's at TLS 1.2. */
const NO_CERTIFICATE = /certificate required|bad certificate/;

/** Why a probe failed, in words that quote neither request nor response; undefined if no reason is known. */
export function failureReasonOf(
  { wire, message, error, result }: ProbeResult,
  isCommand: boolean,
): string | undefined {
  if (result === "Success" && error === undefined) return undefined;
  // A command's output can contain anything, and says nothing about the reason.
  if (isCommand) {
    if (error !== undefined) return "the command could not be run";
    return /timed out/.test(message) ? "the command timed out" : "the command's exit code is not 0";
  }
  if (wire.status !== undefined) {
    return wire.redirects !== undefined && result === "Warning"
      ? "redirects to another host"
      : `HTTP status ${wire.status}`;
  }
  if (wire.grpcStatus !== undefined && wire.grpcStatus !== "OK") return `gRPC status ${wire.grpcStatus}`;
  if (wire.isModeIgnored && wire.protocol !== "h2c") return "grpc.mode is ignored: its feature gate is off";
  const text = error ?? wire.lastAttempt ?? message;
  if (NO_CERTIFICATE.test(text)) return "the server asks for a client certificate";
  if (text.startsWith("service unhealthy")) return "gRPC: the service is not SERVING";
  return REASONS.find(([pattern]) => pattern.test(text))?.[1] ?? "the answer could not be read";
}

/** A round's result; undefined: the probe could not run. */
export type RoundResult = "Success" | "Failure" | undefined;

/** A core/v1 Event about a container. */
export interface ProbeEvent {
  readonly type: "Warning" | "Normal";
  readonly reason: string;
  /**
   * The kubelet's text. It may quote the probe's request or the container's output, so it goes to
   * Events, never to logs.
   */
  readonly message: string;
  /** The message without quotations. */
  readonly summary: string;
  /** Why a probe failed, without quotations. */
  readonly cause?: string | undefined;
}

/** The number of attempts without a pause. Only errors are retried, never failures. */
const MAX_PROBE_ATTEMPTS = 3;

/** One round: up to three attempts, and the kubelet's Event in its words. */
export async function runRound(
  kind: ProbeKind,
  attempt: () => Promise<ProbeResult>,
  onEvent: (event: ProbeEvent) => void,
  isCommand = false,
): Promise<RoundResult> {
  let last = await attempt();
  for (let attempts = 1; last.error !== undefined && attempts < MAX_PROBE_ATTEMPTS; attempts++) {
    last = await attempt();
  }
  const { result, message, error } = last;
  const record = (reason: string, summary: string, detail: string) =>
    onEvent({
      type: "Warning",
      reason,
      message: `${summary}: ${detail}`,
      summary,
      cause: failureReasonOf(last, isCommand),
    });
  if (error !== undefined) {
    record("Unhealthy", `${kind} probe errored and resulted in ${result.toLowerCase()} state`, error);
    return undefined;
  }
  switch (result) {
    case "Success":
      return "Success";
    case "Warning":
      record("ProbeWarning", `${kind} probe warning`, message);
      return "Success";
    case "Failure":
      record("Unhealthy", `${kind} probe failed`, message);
      return "Failure";
    case "Unknown":
      return "Failure";
  }
}
