import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import type { RequestUser } from "../access/authn/impersonation.ts";
import type { GrantedSession } from "../access/policy/evaluate-policy.ts";
import type { Plan } from "./plan.ts";
import type { SessionStanding } from "./reauthorizer.ts";
import type { SessionTimeouts } from "./session.ts";
import type { StreamingRequest } from "./streaming-request.ts";

/** An admitted session and its plan. Each leg adds the fields that it needs to dial. */
export interface Admission {
  readonly user: RequestUser;
  readonly request: StreamingRequest;
  /** The upstream's name, as operators know it: a node's, or an API server's authority. */
  readonly node: string;
  /** The container that was located; absent: the one that the request names. */
  readonly container?: string | undefined;
  /** It is an ephemeral container; absent: it is not, or it is unknown. */
  readonly isEphemeral?: boolean | undefined;
  readonly plan: Plan;
  readonly policy: AppliedPolicy;
  /** Absent: its user's rights are not looked at again. */
  readonly standing?: SessionStanding<RequestUser> | undefined;
  readonly trace?: RequestTrace | undefined;
}

/** The rule that admitted a session, and the reason that its user gave. */
export interface AppliedPolicy extends GrantedSession {
  readonly reason: string;
}

/** The session's timeouts under the rule that admitted it. */
export function timesOf({ rule }: Pick<AppliedPolicy, "rule">, timeouts: SessionTimeouts): SessionTimeouts {
  const { idleTimeoutMs = Number.POSITIVE_INFINITY, maxDurationMs = timeouts.maxDurationMs } = rule ?? {};
  return {
    ...timeouts,
    idleMs: Math.min(timeouts.idleMs, idleTimeoutMs),
    maxDurationMs: maxDurationMs && Math.min(maxDurationMs, timeouts.maxDurationMs ?? maxDurationMs),
  };
}
