import { checked, type Field, shaped, table, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, choice, declare, string } from "@sluice/client/internal/config/fields";
import { describe, type Section } from "@sluice/client/internal/config/section";
import { count, duration } from "../number-fields.ts";
import { choices, map, section, sections, strings } from "../section-fields.ts";
import { LONGEST_WAIT } from "./timeouts.ts";

const SUBRESOURCES = ["exec", "attach", "portforward"] as const;
export type PolicySubresource = (typeof SUBRESOURCES)[number];

const SESSION_TIME = { from: "1s", to: LONGEST_WAIT } as const;
const SESSIONS = { from: 1, to: 1_000_000 } as const;

const commandFields = table({
  exact: strings("The whole command line."),
  prefix: strings(
    "The first arguments, compared whole: `[sh]` matches `sh -c x`, not `/bin/sh` and not `bash`.",
  ),
  programs: strings("Base names of the program, with any arguments: `sh` is also `/bin/sh` and `./sh`.", {
    check: (name) =>
      /^[^/]+$/.test(name)
        ? undefined
        : `must be a name without a path, got ${JSON.stringify(name.slice(0, 80))}`,
  }),
});

const command = shaped(checked(commandFields, checkCommand), ({ exact, prefix, programs }) => {
  if (programs.length > 0) return { match: "programs", argv: programs } as const;
  return exact.length > 0
    ? ({ match: "exact", argv: exact } as const)
    : ({ match: "prefix", argv: prefix } as const);
});

export type CommandPattern = ValueOf<typeof command>;

/**
 * The conditions of rules about sessions. Undefined and an empty list match every session; all given
 * conditions must match.
 */
export const sessionMatch = {
  users: strings("Names of users."),
  groups: strings("Groups; the user must be in one of them."),
  namespaces: strings("Namespaces of pods."),
  podLabels: map("Labels of the pod, with their values.", {
    type: "map of strings",
    values: { type: ["string", "null"], minLength: 1 },
    parse: labelOf,
  }),
  containers: strings("Names of containers."),
  subresources: choices("Kinds of sessions.", SUBRESOURCES, { default: [] }),
  command: sections("Command lines of exec; each entry has one of these fields.", command),
  tty: boolean("Whether the session has a terminal."),
  stdin: boolean("Whether the session has standard input."),
};

const match = table({
  ...sessionMatch,
  ports: ports('Forwarded ports, such as 8080 or "9000-9100".'),
});

export type PolicyMatch = ValueOf<typeof match>;

const rule = table({
  name: string("Name for refusals and logs: up to 63 letters, digits, dots, dashes and underscores.", {
    required: "is required: refusals and logs name the rule",
    check: checkRuleName,
  }),
  match: section(
    "The sessions that the rule applies to. Absent fields match every session.",
    checked(match, checkMatch),
  ),
  action: choice("`requireReason` allows sessions that give a reason.", ["allow", "deny", "requireReason"], {
    required: "is required: allow, deny, requireReason",
  }),
  message: string("Text for users in the refusal, up to 300 characters.", { check: checkMessage }),
  maxDuration: duration(
    "How long a session may last, busy or not; a terminal is warned. Past it the session ends with a Status.",
    SESSION_TIME,
  ),
  idleTimeout: duration(
    "How long these sessions may carry no payload, if shorter than `timeouts.idle`. Past it they end with a Status.",
    SESSION_TIME,
  ),
});

/** The first matching rule decides. */
export type PolicyRule = ValueOf<typeof rule>;

const fields = table({
  rules: sections(
    "Rules are tried in order; the first match decides. A session that matches no rule is allowed.",
    checked(rule, checkRule),
  ),
  limits: section(
    "Limits of concurrent sessions, of this replica or, with `quotaStore`, of all replicas.",
    table({
      maxSessionsPerUser: count(
        "Concurrent sessions of one user. Absent: unlimited. Past it: 429 with Retry-After.",
        SESSIONS,
      ),
      maxSessionsPerNamespace: count(
        "Concurrent sessions of one namespace. Absent: unlimited. Past it: 429 with Retry-After.",
        SESSIONS,
      ),
    }),
  ),
});

type SessionPolicy = ValueOf<typeof fields>;

export const policy = checked(fields, checkNames);

function checkNames({ rules }: SessionPolicy, section: Section): void {
  const names = rules.map(({ name }) => name);
  for (const [index, name] of names.entries()) {
    if (name !== "" && names.indexOf(name) < index)
      section.item("rules", index).problem("name", `duplicate name ${JSON.stringify(name)}`);
  }
}

function checkRule(values: PolicyRule, section: Section): void {
  const hasTime = (values.maxDurationMs ?? values.idleTimeoutMs) !== undefined;
  if (values.action === "deny" && hasTime) {
    section.problem("action", "deny leaves no session that maxDuration or idleTimeout could end");
  }
  if (values.match.ports.length > 0 && hasTime) {
    // kubectl forwards several ports in one session, and names each one when it is used.
    section.problem("match", "ports belong to connections; maxDuration and idleTimeout belong to sessions");
  }
  if (values.action === "allow" && values.message !== undefined) {
    section.problem("message", "is shown to refused users, and the action allow refuses none");
  }
}

function checkMatch(values: PolicyMatch, section: Section): void {
  checkSessionMatch(values, section);
  const { subresources, command: commands, ports: ranges } = values;
  if (ranges.length > 0 && !covers(subresources, "portforward"))
    section.problem("ports", "only portforward has ports");
  if (ranges.length > 0 && commands.length > 0) {
    section.problem("ports", "no session has both a command and ports");
  }
}

/** Notes conditions that no session can meet. */
export function checkSessionMatch(
  { subresources, command: commands }: Pick<PolicyMatch, "subresources" | "command">,
  section: Section,
): void {
  if (commands.length > 0 && !covers(subresources, "exec"))
    section.problem("command", "only exec has a command");
}

function covers(subresources: readonly PolicySubresource[], name: PolicySubresource): boolean {
  return subresources.length === 0 || subresources.includes(name);
}

function checkCommand(values: ValueOf<typeof commandFields>, section: Section): void {
  const given = (["exact", "prefix", "programs"] as const).filter((name) => section.has(name));
  if (given.length !== 1) section.problem("exact", "give one of exact, prefix and programs");
  const [name] = given;
  if (name !== undefined && values[name].length === 0)
    section.problem(name, "must name at least the program");
}

function labelOf(value: unknown): string {
  if (typeof value !== "string") throw new RangeError(`must be a string, got ${describe(value)}`);
  if (value === "") throw new RangeError("must not be empty");
  return value;
}

function ports(sentence: string): Field<ReturnType<typeof portsOf>, "*"> {
  const schema = {
    type: "array",
    items: {
      anyOf: [
        { type: "integer", minimum: 1, maximum: 65_535 },
        { type: "string", pattern: "^[0-9]{1,5}(-[0-9]{1,5})?$" },
      ],
    },
  };
  return declare(sentence, {
    default: [],
    type: "list of ports and ranges",
    schema,
    read: (parent, name) => parent.list(name).flatMap((value, index) => portsOf(parent, name, value, index)),
  });
}

/** The inclusive ranges of `8080` or `"9000-9100"`. */
function portsOf(
  section: Section,
  name: string,
  value: unknown,
  index: number,
): readonly { readonly from: number; readonly to: number }[] {
  const [, first = "", last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(String(value)) ?? [];
  const [from, to] = [Number(first), Number(last)];
  if (first !== "" && from >= 1 && to <= 65_535 && from <= to) return [{ from, to }];
  section.problem(
    name,
    `item ${index} must be a port such as 8080 or a range such as "9000-9100", from 1 to 65535`,
  );
  return [];
}

export function checkRuleName(name: string): string | undefined {
  return /^[\w.-]{1,63}$/.test(name)
    ? undefined
    : "must be 1 to 63 letters, digits, dots, dashes or underscores";
}

function checkMessage(message: string): string | undefined {
  // It becomes part of a Status of at most 1,024 bytes.
  return message.length <= 300 ? undefined : "must be no longer than 300 characters";
}
