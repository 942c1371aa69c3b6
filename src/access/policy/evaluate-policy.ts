import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type {
  CommandPattern,
  PolicyMatch,
  PolicyRule,
  PolicySubresource,
} from "../../config/sections/policy.ts";

/**
 * The header in which a client gives its reason; a client that cannot set headers uses the query's
 * `sluiceReason`.
 */
export const REASON_HEADER = "sluice-reason";

export const REASON_QUERY = "sluiceReason";

/** Characters of a given reason, on one line. Past it: 400. */
const MAX_REASON_CHARACTERS = 500;

/** A requested session's properties for the policy. */
export interface WantedSession {
  readonly user: string;
  readonly groups: readonly string[];
  readonly namespace: string;
  readonly podLabels: Readonly<Record<string, string>>;
  /** Undefined for port-forward, which addresses a pod. */
  readonly container: string | undefined;
  readonly subresource: PolicySubresource;
  readonly command: readonly string[];
  readonly tty: boolean;
  readonly stdin: boolean;
  /** Undefined if the client names its ports only inside the stream, after admission. */
  readonly ports: readonly number[] | undefined;
  /** The user's reason for the session; may be empty. */
  readonly reason: string;
}

/** The policy's verdict and its rule; if no rule matches, the session is allowed. */
type Verdict =
  | { readonly type: "allowed"; readonly rule: PolicyRule | undefined }
  /** Each port is checked when the client names it; this is the first rule about ports. */
  | { readonly type: "by-port"; readonly rule: PolicyRule }
  | { readonly type: "refused"; readonly rule: PolicyRule; readonly cause: RefusalCause };

type RefusalCause = "denied" | "reason-missing" | "ports-unseen";

/** The first matching rule decides. Pure. */
export function evaluatePolicy(rules: readonly PolicyRule[], wanted: WantedSession): Verdict {
  for (const rule of rules) {
    if (!matchesSession(rule.match, wanted)) continue;
    if (rule.match.ports.length > 0) {
      if (wanted.subresource !== "portforward") continue;
      if (wanted.ports === undefined) return { type: "by-port", rule };
      if (!portsMatch(rule, wanted.ports)) continue;
    }
    if (rule.action === "deny") return { type: "refused", rule, cause: "denied" };
    if (rule.action === "requireReason" && wanted.reason === "") {
      return { type: "refused", rule, cause: "reason-missing" };
    }
    return { type: "allowed", rule };
  }
  return { type: "allowed", rule: undefined };
}

/** Checks all conditions except the ports. Pure. */
export function matchesSession(
  match: Omit<PolicyMatch, "ports">,
  wanted: Omit<WantedSession, "ports" | "reason">,
): boolean {
  return (
    isAmong(match.users, wanted.user) &&
    (match.groups.length === 0 || match.groups.some((group) => wanted.groups.includes(group))) &&
    isAmong(match.namespaces, wanted.namespace) &&
    isAmong(match.subresources, wanted.subresource) &&
    (match.containers.length === 0 || match.containers.includes(wanted.container ?? "")) &&
    hasLabels(wanted.podLabels, match.podLabels) &&
    (match.command.length === 0 || isCommand(match.command, wanted)) &&
    (match.tty === undefined || match.tty === wanted.tty) &&
    (match.stdin === undefined || match.stdin === wanted.stdin)
  );
}

function isAmong<T>(values: readonly T[], value: T): boolean {
  return values.length === 0 || values.includes(value);
}

function hasLabels(
  labels: Readonly<Record<string, string>>,
  needed: Readonly<Record<string, string>>,
): boolean {
  return Object.entries(needed).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}

/**
 * Compares argument by argument: `sh -c "rm x"` does not begin with `sh -c rm`. A program's path is
 * reduced to its last part.
 */
function isCommand(
  patterns: readonly CommandPattern[],
  { subresource, command }: Pick<WantedSession, "subresource" | "command">,
): boolean {
  if (subresource !== "exec") return false;
  return patterns.some(({ match, argv }) => {
    if (match === "programs") return argv.includes(baseNameOf(command[0] ?? ""));
    return (
      (match === "prefix" || argv.length === command.length) &&
      argv.every((argument, index) => argument === command[index])
    );
  });
}

export function baseNameOf(program: string): string {
  return program.slice(program.lastIndexOf("/") + 1);
}

/**
 * One port is enough to refuse the session or to require a reason; a rule allows it only if all
 * ports match.
 */
function portsMatch({ action, match }: PolicyRule, ports: readonly number[]): boolean {
  const isIn = (port: number) => match.ports.some(({ from, to }) => port >= from && port <= to);
  return action === "allow" ? ports.length > 0 && ports.every(isIn) : ports.some(isIn);
}

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
