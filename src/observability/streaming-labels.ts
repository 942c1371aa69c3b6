/**
 * Label values of the streaming metrics. Closed lists: nothing that a client or node sends becomes
 * a label.
 */
export const SUBRESOURCES = ["exec", "attach", "portforward"] as const;
export type SubresourceLabel = (typeof SUBRESOURCES)[number];

export const PLAN_KINDS = ["pass-through", "translate", "tunnel", "bridge", "proxied"] as const;
type PlanKindLabel = (typeof PLAN_KINDS)[number];

/**
 * Every pair of `ended_by` and `cause` that a session can end with; docs/metrics.md explains each.
 */
export const SESSION_ENDS = [
  { endedBy: "node", cause: "completed" },
  { endedBy: "node", cause: "upstream-lost" },
  { endedBy: "node", cause: "upstream-failed" },
  { endedBy: "node", cause: "protocol-error" },
  { endedBy: "node", cause: "stream-creation-timeout" },
  { endedBy: "client", cause: "client-gone" },
  { endedBy: "client", cause: "protocol-error" },
  { endedBy: "client", cause: "stream-creation-timeout" },
  { endedBy: "gateway", cause: "idle" },
  { endedBy: "gateway", cause: "time-limit" },
  { endedBy: "gateway", cause: "moderator" },
  { endedBy: "gateway", cause: "recording-failed" },
  { endedBy: "gateway", cause: "authorization-revoked" },
  { endedBy: "gateway", cause: "refused" },
  { endedBy: "gateway", cause: "internal-error" },
  { endedBy: "gateway", cause: "shutdown" },
] as const;
type EndedByLabel = (typeof SESSION_ENDS)[number]["endedBy"];
type EndCauseLabel = (typeof SESSION_ENDS)[number]["cause"];

/**
 * How Kubernetes' counters see a session: a client of WebSocket v5 or the tunnel (KEP-4006), one whose
 * feature gate is off, or another.
 */
export type CountedAs = "new-protocol" | "gated" | "other";

/** The plan's fields for metrics. */
export interface MeasuredPlan {
  readonly kind: PlanKindLabel;
  /** Selects the counters of Kubernetes; not a label. */
  readonly countedAs: CountedAs;
}

/** A finished session's fields for metrics. Bytes are payload. */
export interface MeasuredReport {
  readonly endedBy: EndedByLabel;
  readonly cause: EndCauseLabel;
  readonly code: number;
  readonly downstreamBytes: number;
  readonly upstreamBytes: number;
}

/** A running session. */
export interface MeasuredSession {
  readonly subresource: SubresourceLabel;
  readonly downstreamBytes: number;
  readonly upstreamBytes: number;
}

/** An HTTP status as a label; invalid ones share one value. */
export function codeLabel(code: number): string {
  return Number.isInteger(code) && code >= 100 && code <= 599 ? String(code) : "unknown";
}
