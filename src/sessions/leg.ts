import type { UserInfo } from "../access/user-info.ts";
import type { StatusError } from "../api/status.ts";
import type { RefusedUpgrade, UpgradeResponse } from "../http/upgrade/upgrade-request.ts";
import type { Admission } from "./admission.ts";
import type { IncomingStreaming } from "./incoming-request.ts";
import type { SessionObserver } from "./observers/session-observer.ts";
import type { Plan } from "./plan.ts";
import type { StreamingPath, Subresource } from "./streaming-request.ts";

/** What differs between the API server's, the kubelet's and the agent's sessions, for one request. The steps are run-session.ts's. */
export interface Leg<A extends Admission = Admission> {
  readonly path: StreamingPath;
  /** The user, authorization, the request, its target and plan. Throws StatusError. */
  admit(incoming: IncomingStreaming): Promise<A>;
  /**
   * Asks the upstream for the session, by the admission's plan. Throws StatusError where there is no answer, or none that can be used, and
   * UpstreamError "aborted" when the client left meanwhile.
   */
  dial(admission: A, signal: AbortSignal): Promise<UpgradeResponse>;
  /** The upstream switched protocols; the result sees the session. */
  switched?(admission: A): SessionObserver | undefined;
  /** Absent: one plan is all. */
  readonly fallback?: Fallback<A> | undefined;
  /** Absent: no session is resumed here. */
  readonly resumption?: ResumptionRules<A> | undefined;
}

/** Another plan behind a refusal. An upstream that refuses an upgrade has begun nothing, so nothing happens twice. */
export interface Fallback<A extends Admission> {
  /** What is left behind this plan; undefined: it was the last. Pure. */
  planAfter(plan: Plan, subresource: Subresource): Plan | undefined;
  /** The session by the next plan; undefined where the refusal is not about the path, and stands. Throws StatusError. */
  replan(admission: A, nextPlan: Plan, refusal: Refusal): A | undefined;
  /** The upstream took the next plan. `admission` and `refusal` are the first ones. */
  fellBack(admission: A, refusal: Refusal): void;
}

/** An answer with the beginning of its body (which is whole again), or the error for the client where there was none. */
export type Refusal =
  | { readonly answer: RefusedUpgrade; readonly text: string }
  | { readonly answer?: undefined; readonly error: StatusError };

/** What is checked again when a session is resumed. Both throw StatusError. */
export interface ResumptionRules<A extends Admission> {
  /** The user, authorized to open sessions at this path. */
  authorize(incoming: IncomingStreaming): Promise<UserInfo>;
  /** What else was decided when the session began, and may be decided otherwise by now. */
  reauthorize?(admission: A, user: UserInfo): void;
}
