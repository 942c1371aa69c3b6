/** Label values of the streaming metrics. Closed lists: nothing that a client or a node sends ever becomes a label. */
export const SUBRESOURCES = ["exec", "attach", "portforward"] as const;
export type SubresourceLabel = (typeof SUBRESOURCES)[number];

export const PLAN_KINDS = ["pass-through", "translate", "tunnel", "bridge", "proxied"] as const;
export type PlanKindLabel = (typeof PLAN_KINDS)[number];

/** Every pair of `ended_by` and `cause` that a session can end with; docs/metrics.md says what each means. */
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
  { endedBy: "gateway", cause: "refused" },
  { endedBy: "gateway", cause: "internal-error" },
  { endedBy: "gateway", cause: "shutdown" },
] as const;
export type EndedByLabel = (typeof SESSION_ENDS)[number]["endedBy"];
export type EndCauseLabel = (typeof SESSION_ENDS)[number]["cause"];

/** The part of a plan that metrics are about. */
export interface MeasuredPlan {
  readonly kind: PlanKindLabel;
  /** One of the gateway's plan reasons; decides which Kubernetes counters apply, is no label. */
  readonly reason: string;
}

/** The part of a finished session's report that metrics are about. Bytes are payload. */
export interface MeasuredReport {
  readonly endedBy: EndedByLabel;
  readonly cause: EndCauseLabel;
  readonly code: number;
  readonly downstreamBytes: number;
  readonly upstreamBytes: number;
}

/** A session that still runs. */
export interface MeasuredSession {
  readonly subresource: SubresourceLabel;
  readonly downstreamBytes: number;
  readonly upstreamBytes: number;
}

const NEW_WEBSOCKET_REASONS: ReadonlySet<string> = new Set([
  "node-speaks-websocket",
  "node-held-to-websocket",
  "node-held-to-spdy",
  "node-failed-at-websocket",
  "node-speaks-spdy-only",
  "runtime-speaks-spdy",
  "node-knows-other-name",
  "only-websocket-passes",
  "gate-off",
]);

/** True when the client offered WebSocket v5 (exec, attach) or the port-forward tunnel, which KEP-4006's counters count. */
export function isNewWebSocket(plan: MeasuredPlan): boolean {
  return NEW_WEBSOCKET_REASONS.has(plan.reason);
}

/** An HTTP status as a label; whatever is none shares one value. */
export function codeLabel(code: number): string {
  return Number.isInteger(code) && code >= 100 && code <= 599 ? String(code) : "unknown";
}
