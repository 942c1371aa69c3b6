import type { RequestUser } from "../access/authn/impersonation.ts";
import type { GrantedSession } from "../access/policy/require-policy.ts";
import type { RequestTrace } from "../observability/trace.ts";
import type { Plan } from "./plan.ts";
import type { SessionTimeouts } from "./session.ts";
import type { StreamingRequest } from "./streaming-request.ts";

/** A session that may go ahead, and the way it takes. Each leg adds what it needs to dial. */
export interface Admission {
  readonly user: RequestUser;
  readonly request: StreamingRequest;
  /** The upstream by the name that operators know: a node's, or an API server's authority. */
  readonly node: string;
  readonly plan: Plan;
  readonly policy: AppliedPolicy;
  readonly trace?: RequestTrace | undefined;
}

/** By which rule a session goes ahead, and the reason that its user gave. */
export interface AppliedPolicy extends GrantedSession {
  readonly reason: string;
}

/** The times of a session under the rule that let it in. */
export function timesOf({ rule }: Pick<AppliedPolicy, "rule">, timeouts: SessionTimeouts): SessionTimeouts {
  const { idleTimeoutMs = Number.POSITIVE_INFINITY, maxDurationMs = timeouts.maxDurationMs } = rule ?? {};
  return {
    ...timeouts,
    idleMs: Math.min(timeouts.idleMs, idleTimeoutMs),
    maxDurationMs: maxDurationMs && Math.min(maxDurationMs, timeouts.maxDurationMs ?? maxDurationMs),
  };
}
