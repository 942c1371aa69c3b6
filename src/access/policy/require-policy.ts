import { badRequest, forbidden } from "../../api/status.ts";
import type { PolicyRule } from "../../config/policy.ts";
import { evaluatePolicy, type RefusalCause, type WantedSession } from "./evaluate-policy.ts";

/** Where a client gives its reason: this header, or the query's `sluiceReason` where it can set no headers. */
export const REASON_HEADER = "sluice-reason";
export const REASON_QUERY = "sluiceReason";
export const MAX_REASON_CHARACTERS = 500;

/** The reason that a request gives, empty when none. Throws StatusError 400 for one that does not fit into a line of a log. */
export function reasonOf(header: string | undefined, query: string | null): string {
  const reason = (header ?? query ?? "").trim();
  if (reason.length > MAX_REASON_CHARACTERS || /\p{Cc}/u.test(reason)) {
    throw badRequest(`the reason must be one line of at most ${MAX_REASON_CHARACTERS} characters`);
  }
  return reason;
}

/** The rule by which the session may go ahead, or undefined when none speaks about it. Throws StatusError 403 that names the rule. */
export function requirePolicy(
  rules: readonly PolicyRule[],
  wanted: WantedSession,
  pod: string,
): PolicyRule | undefined {
  const verdict = evaluatePolicy(rules, wanted);
  if (verdict.type === "allowed") return verdict.rule;
  throw forbidden("pods", pod, refusalText(verdict.rule, verdict.cause));
}

/** The sentence after `pods "web" is forbidden: `. */
export function refusalText({ name, message }: PolicyRule, cause: RefusalCause): string {
  const sentence = {
    denied: `policy rule ${JSON.stringify(name)} denies it`,
    "reason-missing": `policy rule ${JSON.stringify(name)} requires a reason, in the header Sluice-Reason or the query parameter ${REASON_QUERY}`,
    "ports-unknown": `policy rule ${JSON.stringify(name)} decides by port, and this client names its ports only inside of the stream`,
  }[cause];
  return message === undefined ? sentence : `${sentence}: ${message}`;
}
