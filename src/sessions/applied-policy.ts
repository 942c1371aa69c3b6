import type { GrantedSession } from "../access/policy/require-policy.ts";
import type { SessionTimeouts } from "./carriers/session.ts";

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
