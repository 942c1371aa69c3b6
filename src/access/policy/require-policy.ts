import { badRequest, forbidden } from "../../api/status.ts";
import type { PolicyRule } from "../../config/sections/policy.ts";
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

/** What a session that may go ahead is bound to. */
export interface GrantedSession {
  /** Undefined when no rule speaks about it, or none before its ports are known. */
  readonly rule: PolicyRule | undefined;
  /** Why a port may not be forwarded, undefined when it may. Absent where no port has to be asked about. */
  readonly portRefusal?: PortRefusal;
}

export type PortRefusal = (port: number) => string | undefined;

/**
 * Throws StatusError 403 that names the rule by which the session is refused. `canSeePorts`: whether the carrier of the session
 * looks for ports in it; without that a rule about them can only refuse.
 */
export function requirePolicy(
  rules: readonly PolicyRule[],
  wanted: WantedSession,
  pod: string,
  canSeePorts: boolean,
): GrantedSession {
  const verdict = evaluatePolicy(rules, wanted);
  if (verdict.type === "allowed") return { rule: verdict.rule };
  if (verdict.type === "by-port" && canSeePorts) {
    return {
      rule: undefined,
      portRefusal: (port) => {
        const ofPort = evaluatePolicy(rules, { ...wanted, ports: [port] });
        return ofPort.type === "refused" ? refusalText(ofPort.rule, ofPort.cause) : undefined;
      },
    };
  }
  const cause = verdict.type === "by-port" ? "ports-unseen" : verdict.cause;
  throw forbidden("pods", pod, refusalText(verdict.rule, cause));
}

/** The sentence after `pods "web" is forbidden: `. */
export function refusalText({ name, message }: PolicyRule, cause: RefusalCause): string {
  const sentence = {
    denied: `policy rule ${JSON.stringify(name)} denies it`,
    "reason-missing": `policy rule ${JSON.stringify(name)} requires a reason, in the header Sluice-Reason or the query parameter ${REASON_QUERY}`,
    "ports-unseen": `policy rule ${JSON.stringify(name)} decides by port, which cannot be seen in a WebSocket that passes through to the node`,
  }[cause];
  return message === undefined ? sentence : `${sentence}: ${message}`;
}
