import type { PolicyRule } from "../../config/sections/policy.ts";
import { baseNameOf, evaluatePolicy, type WantedSession } from "./evaluate-policy.ts";

/** Each of these programs can start the others, and most images contain one of them. */
const SHELLS = ["sh", "bash", "ash", "dash", "zsh"];

/** A rule that denies a command, and equivalent command lines that the policy allows. */
interface WalkedRound {
  /** The rule's index in `policy.rules`. */
  readonly index: number;
  readonly rule: PolicyRule;
  readonly command: readonly string[];
  readonly passing: readonly (readonly string[])[];
}

/** Allowed command lines that start the same program; empty if the command itself is allowed. */
export function passingSpellings(
  rules: readonly PolicyRule[],
  wanted: WantedSession,
): readonly (readonly string[])[] {
  if (wanted.subresource !== "exec" || wanted.command.length === 0) return [];
  if (evaluatePolicy(rules, wanted).type !== "refused") return [];
  return spellingsOf(wanted.command).filter(
    (command) => evaluatePolicy(rules, { ...wanted, command }).type !== "refused",
  );
}

/**
 * Rules that deny a command but miss another spelling of it. Tries a sample of spellings, so an
 * empty result proves nothing.
 */
export function walkedRoundRules(rules: readonly PolicyRule[]): readonly WalkedRound[] {
  return rules.flatMap((rule, index) => {
    if (rule.action !== "deny") return [];
    return rule.match.command.flatMap(({ match, argv }) => {
      const commands = match === "programs" ? argv.map((name) => [name]) : [argv];
      return commands.flatMap((command) => {
        const wanted = sessionOf(rule, command);
        const verdict = evaluatePolicy(rules, wanted);
        // An earlier rule decides about it, and is checked itself.
        if (verdict.type !== "refused" || verdict.rule !== rule) return [];
        const passing = passingSpellings(rules, wanted);
        return passing.length === 0 ? [] : [{ index, rule, command, passing }];
      });
    });
  });
}

function spellingsOf(command: readonly string[]): readonly (readonly string[])[] {
  const [program = "", ...rest] = command;
  const name = baseNameOf(program);
  const others = SHELLS.includes(name) ? SHELLS.filter((shell) => shell !== name) : [];
  const all = [
    [name, ...rest],
    [`/bin/${name}`, ...rest],
    [`/usr/bin/${name}`, ...rest],
    ...others.map((shell) => [shell, ...rest]),
    ["env", ...command],
    ["busybox", name, ...rest],
    ["sh", "-c", command.join(" ")],
  ];
  return all.filter((spelling) => spelling.join("\0") !== command.join("\0"));
}

/** A session that matches all of the rule except its command. */
function sessionOf({ match }: PolicyRule, command: readonly string[]): WantedSession {
  const [user = "somebody"] = match.users;
  const [namespace = "default"] = match.namespaces;
  return {
    user,
    groups: match.groups.slice(0, 1),
    namespace,
    podLabels: match.podLabels,
    container: match.containers[0] ?? "main",
    subresource: "exec",
    command,
    tty: match.tty ?? false,
    stdin: match.stdin ?? false,
    ports: [],
    reason: "",
  };
}
