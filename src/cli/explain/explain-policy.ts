import { evaluatePolicy, refusalText, type WantedSession } from "../../access/policy/evaluate-policy.ts";
import { passingSpellings } from "../../access/policy/other-spellings.ts";
import { formatDuration } from "../../config/number-fields.ts";
import type { PolicyRule } from "../../config/sections/policy.ts";

type Described = "command" | "tty" | "stdin" | "reason";

/** A session as the command line describes it. */
type DescribedSession = Omit<WantedSession, Described | "ports"> & {
  readonly [Name in Described]?: WantedSession[Name] | undefined;
} & { readonly port?: readonly number[] | undefined };

/** Names the policy rule that decides about the session, and its verdict. */
export function explainPolicy(
  rules: readonly PolicyRule[],
  described: DescribedSession,
): { readonly text: string; readonly isRefused: boolean } {
  const { command = [], tty = false, stdin = false, port, reason = "" } = described;
  const wanted = { ...described, command, tty, stdin, reason };
  // kubectl requests each port separately while it runs, so policy judges each one.
  const ports = port ?? [];
  const lines =
    ports.length === 0
      ? [lineFor(rules, { ...wanted, ports: undefined })]
      : ports.map((port) => lineFor(rules, { ...wanted, ports: [port] }, `port ${port}: `));
  return {
    text: lines.map(({ text }) => `${text}\n`).join(""),
    isRefused: lines.some(({ isRefused }) => isRefused),
  };
}

function lineFor(rules: readonly PolicyRule[], wanted: WantedSession, prefix = "") {
  const verdict = evaluatePolicy(rules, wanted);
  if (verdict.type === "refused") {
    const text = `${prefix}refused with 403: ${refusalText(verdict.rule, verdict.cause)}`;
    const passing = passingSpellings(rules, wanted).map((command) => JSON.stringify(command));
    if (passing.length === 0) return { isRefused: true, text };
    return {
      isRefused: true,
      text: `${text}\nthe same by another spelling is allowed: ${passing.join(", ")}`,
    };
  }
  const { rule } = verdict;
  if (verdict.type === "by-port") {
    const text = `${prefix}policy rule ${JSON.stringify(verdict.rule.name)} decides by port: give --port`;
    return { isRefused: false, text };
  }
  if (rule === undefined) return { isRefused: false, text: `${prefix}allowed: no policy rule matches` };
  const { maxDurationMs, idleTimeoutMs } = rule;
  const limits = [
    ...(maxDurationMs === undefined ? [] : [`for at most ${formatDuration(maxDurationMs)}`]),
    ...(idleTimeoutMs === undefined ? [] : [`idle for at most ${formatDuration(idleTimeoutMs)}`]),
  ];
  return {
    isRefused: false,
    text: `${prefix}allowed: ${[`policy rule ${JSON.stringify(rule.name)} decides`, ...limits].join(", ")}`,
  };
}
