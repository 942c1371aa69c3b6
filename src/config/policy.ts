import type { Range } from "./limits.ts";
import type { Section } from "./section.ts";

export const POLICY_ACTIONS = ["allow", "deny", "requireReason"] as const;
export type PolicyAction = (typeof POLICY_ACTIONS)[number];

export const POLICY_SUBRESOURCES = ["exec", "attach", "portforward"] as const;
export type PolicySubresource = (typeof POLICY_SUBRESOURCES)[number];

/** A command line that is this one, or begins with these arguments. */
export interface CommandPattern {
  readonly match: "exact" | "prefix";
  readonly argv: readonly string[];
}

/** Both ends included. */
export interface PortRange {
  readonly from: number;
  readonly to: number;
}

/** What a session must be for a rule to apply. An empty list and undefined match everything; all that is given must match. */
export interface PolicyMatch {
  readonly users: readonly string[];
  readonly groups: readonly string[];
  readonly namespaces: readonly string[];
  readonly podLabels: Readonly<Record<string, string>>;
  readonly containers: readonly string[];
  readonly subresources: readonly PolicySubresource[];
  readonly command: readonly CommandPattern[];
  readonly tty: boolean | undefined;
  readonly stdin: boolean | undefined;
  readonly ports: readonly PortRange[];
}

/** The first rule that matches decides; without one a session is allowed. */
export interface PolicyRule {
  readonly name: string;
  readonly match: PolicyMatch;
  readonly action: PolicyAction;
  /** Told to the user who is refused. */
  readonly message: string | undefined;
  /** A session of this rule ends after this long, whatever it does. */
  readonly maxDurationMs: number | undefined;
  /** Stands in for timeouts.idle where it is shorter. */
  readonly idleTimeoutMs: number | undefined;
}

export interface SessionPolicy {
  readonly rules: readonly PolicyRule[];
  readonly limits: {
    /** Sessions at once of one user, or in one namespace. Past it: 429. Undefined: no such bound. */
    readonly maxSessionsPerUser: number | undefined;
    readonly maxSessionsPerNamespace: number | undefined;
  };
}

const SESSION_TIME: Range = { min: 1_000, max: 24 * 24 * 3_600_000 };
const SESSIONS: Range = { min: 1, max: 1_000_000 };

export function readPolicy(section: Section): SessionPolicy {
  const names = new Set<string>();
  const rules = section.sections("rules").map((rule) => readRule(rule, names));
  const limits = section.section("limits");
  const count = (name: string) => (limits.has(name) ? limits.count(name, 0, SESSIONS) : undefined);
  const policy = {
    rules,
    limits: {
      maxSessionsPerUser: count("maxSessionsPerUser"),
      maxSessionsPerNamespace: count("maxSessionsPerNamespace"),
    },
  };
  limits.finish();
  section.finish();
  return policy;
}

function readRule(section: Section, names: Set<string>): PolicyRule {
  const name = section.optionalString("name", checkRuleName) ?? "";
  if (!section.has("name")) section.problem("name", "is required: refusals and logs name the rule");
  else if (names.has(name)) section.problem("name", `duplicate name ${JSON.stringify(name)}`);
  names.add(name);
  const match = readMatch(section.section("match"));
  const action = section.choice("action", "deny", POLICY_ACTIONS);
  if (!section.has("action")) section.problem("action", `is required: ${POLICY_ACTIONS.join(", ")}`);
  const duration = (field: string) =>
    section.has(field) ? section.durationMs(field, 0, SESSION_TIME) : undefined;
  const rule = {
    name,
    match,
    action,
    message: section.optionalString("message", checkMessage),
    maxDurationMs: duration("maxDuration"),
    idleTimeoutMs: duration("idleTimeout"),
  };
  if (action === "deny" && (rule.maxDurationMs ?? rule.idleTimeoutMs) !== undefined) {
    section.problem("action", "deny leaves no session that maxDuration or idleTimeout could end");
  }
  if (match.ports.length > 0 && (rule.maxDurationMs ?? rule.idleTimeoutMs) !== undefined) {
    // kubectl forwards several ports in one session, and names them one by one while it runs.
    section.problem("match", "ports belong to connections; maxDuration and idleTimeout belong to sessions");
  }
  if (action === "allow" && rule.message !== undefined) {
    section.problem("message", "is told to users who are refused; the action allow refuses nobody");
  }
  section.finish();
  return rule;
}

function readMatch(section: Section): PolicyMatch {
  const any = () => undefined;
  const labels = section.section("podLabels");
  const match: PolicyMatch = {
    users: section.strings("users", [], any),
    groups: section.strings("groups", [], any),
    namespaces: section.strings("namespaces", [], any),
    podLabels: Object.fromEntries(labels.entries().map(([key]) => [key, labels.string(key, "")] as const)),
    containers: section.strings("containers", [], any),
    subresources: section.has("subresources")
      ? section.choices("subresources", POLICY_SUBRESOURCES, POLICY_SUBRESOURCES)
      : [],
    command: section.sections("command").map(readCommand),
    tty: section.has("tty") ? section.boolean("tty", false) : undefined,
    stdin: section.has("stdin") ? section.boolean("stdin", false) : undefined,
    ports: section.list("ports").flatMap((value, index) => readPort(section, value, index)),
  };
  const covers = (name: PolicySubresource) =>
    match.subresources.length === 0 || match.subresources.includes(name);
  if (match.command.length > 0 && !covers("exec")) section.problem("command", "only exec has a command");
  if (match.ports.length > 0 && !covers("portforward"))
    section.problem("ports", "only portforward has ports");
  if (match.ports.length > 0 && match.command.length > 0) {
    section.problem("ports", "no session has both a command and ports");
  }
  section.finish();
  return match;
}

function readCommand(section: Section): CommandPattern {
  const isExact = section.has("exact");
  if (isExact === section.has("prefix")) section.problem("exact", "give either exact or prefix");
  const match = isExact ? "exact" : "prefix";
  const argv = section.strings(match, [], () => undefined);
  if (argv.length === 0) section.problem(match, "must name at least the program");
  section.finish();
  return { match, argv };
}

/** `8080` or `"9000-9100"`. */
function readPort(section: Section, value: unknown, index: number): PortRange[] {
  const [, first = "", last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(String(value)) ?? [];
  const [from, to] = [Number(first), Number(last)];
  if (first !== "" && from >= 1 && to <= 65_535 && from <= to) return [{ from, to }];
  section.problem(
    "ports",
    `item ${index} must be a port such as 8080 or a range such as "9000-9100", from 1 to 65535`,
  );
  return [];
}

function checkRuleName(name: string): string | undefined {
  return /^[\w.-]{1,63}$/.test(name)
    ? undefined
    : "must be 1 to 63 letters, digits, dots, dashes or underscores";
}

function checkMessage(message: string): string | undefined {
  // It goes into a Status of at most 1,024 bytes.
  return message.length <= 300 ? undefined : "must be no longer than 300 characters";
}
