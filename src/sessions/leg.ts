import type { StatusError } from "@sluice/client/internal/api/status";
import type { RefusedUpgrade, UpgradeResponse } from "@sluice/client/internal/http/upgrade/upgrade-request";
import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import type { RequestUser } from "../access/authn/impersonation.ts";
import type { GrantedSession } from "../access/policy/evaluate-policy.ts";
import type { Downstream, IncomingStreaming } from "./incoming-request.ts";
import type { SessionObserver } from "./observers/session-observer.ts";
import type { Plan } from "./plan.ts";
import type { SessionStanding } from "./reauthorizer.ts";
import type { SessionTimeouts } from "./session.ts";
import type { StreamingPath, StreamingRequest, Subresource } from "./streaming-request.ts";

/**
 * The steps that differ between sessions of the API server, the kubelet and the agent. run-session.ts
 * runs them.
 */
export interface Leg<A extends Admission = Admission> {
  readonly path: StreamingPath;
  /**
   * Authenticates and authorizes the user, parses the request, finds its target and plans. Throws
   * StatusError.
   */
  admit(incoming: IncomingStreaming): Promise<A>;
  /**
   * Requests the session from the upstream by the admission's plan. Throws StatusError if the upstream
   * gives no usable answer, and UpstreamError "aborted" if the client left.
   */
  dial(admission: A, signal: AbortSignal): Promise<UpgradeResponse>;
  /** Called when the upstream has switched protocols. The returned observer sees the session. */
  switched?(admission: A): SessionObserver | undefined;
  /** Absent: there is no second plan. */
  readonly fallback?: Fallback<A> | undefined;
  /** The client with what this leg adds to it, such as resumption; absent: nothing. */
  downstream?(admission: A, client: Downstream): Downstream;
}

/**
 * A second plan after a refusal. It is safe: an upstream that refuses an upgrade has not started the
 * command.
 */
export interface Fallback<A extends Admission> {
  /** The next plan; undefined: `plan` was the last. Pure. */
  planAfter(plan: Plan, subresource: Subresource): Plan | undefined;
  /**
   * The session under the next plan; undefined if the refusal is not about the protocol. Throws
   * StatusError.
   */
  replan(admission: A, nextPlan: Plan, refusal: Refusal): A | undefined;
  /** The upstream accepted the next plan. `admission` and `refusal` are those of the first. */
  fellBack(admission: A, refusal: Refusal): void;
}

/**
 * The upstream's answer with the beginning of its body (still readable in full), or, without an
 * answer, the error for the client.
 */
export type Refusal =
  | { readonly answer: RefusedUpgrade; readonly text: string }
  | { readonly answer?: undefined; readonly error: StatusError };

/** An admitted session and its plan. Each leg adds the fields that it needs to dial. */
export interface Admission {
  readonly user: RequestUser;
  readonly request: StreamingRequest;
  /** The upstream's name, as operators know it: a node's, or an API server's authority. */
  readonly node: string;
  /** The container that was located; absent: the one that the request names. */
  readonly container?: string | undefined;
  /** The container is an ephemeral one; absent: it is not one, or that is unknown. */
  readonly isEphemeral?: boolean | undefined;
  readonly plan: Plan;
  readonly policy: AppliedPolicy;
  /** Absent: the user's rights are not checked again. */
  readonly standing?: SessionStanding<RequestUser> | undefined;
  readonly trace?: RequestTrace | undefined;
}

/** The rule that admitted a session, and the reason that its user gave. */
interface AppliedPolicy extends GrantedSession {
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
