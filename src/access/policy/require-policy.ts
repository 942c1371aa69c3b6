import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { PolicyRule } from "../../config/sections/policy.ts";
import { evaluatePolicy, type RefusalCause, type WantedSession } from "./evaluate-policy.ts";

/**
 * A client gives its reason in this header, or in the query's `sluiceReason` if it cannot set
 * headers.
 */
export const REASON_HEADER = "sluice-reason";
export const REASON_QUERY = "sluiceReason";
/** A given reason, on one line. Past it: 400. */
const MAX_REASON_CHARACTERS = 500;

/**
 * The request's reason, empty if none. Throws StatusError 400 if it does not fit into a log line.
 */
export function reasonOf(header: string | undefined, query: string | null): string {
  const reason = (header ?? query ?? "").trim();
  if (reason.length > MAX_REASON_CHARACTERS || /\p{Cc}/u.test(reason)) {
    throw WIRE_ERRORS["reason-invalid"].streaming({ maxCharacters: MAX_REASON_CHARACTERS });
  }
  return reason;
}

/** The conditions of an admitted session. */
export interface GrantedSession {
  /** Undefined if no rule matches, or none before the ports are known. */
  readonly rule: PolicyRule | undefined;
  /** Returns why a port may not be forwarded, or undefined. Absent if no port needs a check. */
  readonly portRefusal?: PortRefusal;
}

type PortRefusal = (port: number) => string | undefined;

/**
 * Throws StatusError 403 with the refusing rule's name. `canSeePorts`: whether the session's
 * carrier finds its ports; otherwise a rule about ports can only refuse.
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
  throw WIRE_ERRORS["policy-denied"].streaming({ pod, sentence: refusalText(verdict.rule, cause) });
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
