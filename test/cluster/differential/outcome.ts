import type { HttpAnswer } from "./raw-exchange.ts";

/** What a client saw of one step of a case: lines of text, so that a difference is read at once. */
export type Outcome = readonly string[];

/** What stands for a text that each way to the cluster has its own of: addresses, names of objects. */
export type Known = Readonly<Record<string, string>>;

/** Values that no two runs have in common, by what stands for them. */
const VOLATILE: readonly (readonly [RegExp, string])[] = [
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\b/g, "<time>"],
  [/\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d (?:GMT|[+-]\d{4})/g, "<time>"],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, "<uid>"],
  [/("?resourceVersion"?: ?)"?\d+"?/g, "$1<version>"],
  [/\b(?:\d+d)?(?:\d+h)?(?:\d+m)?\d+s\b( ago)?/g, "<age>"],
  [/"\d+(?:m\d+)?[sm]"/g, '"<age>"'],
  [/\b[0-9a-f]{64}\b/g, "<id>"],
  [/\/tmp\/(LIVE|MERGED)-\d+/g, "/tmp/$1"],
  [/\t\d{4}-\d\d-\d\d [\d:.]+ [+-]\d{4}$/gm, "\t<time>"],
];

/** kubectl's own log, the stderr of cp's `tar`, which it does not wait for, and what depends on the controller's speed. */
const CHANCE = /^(?:[EW]\d{4} [\d:.]+ .*|tar: .*|Waiting for deployment .*)\n?/gm;

export function pruned(text: string, known: Known): string {
  let result = text.replaceAll(CHANCE, "");
  for (const [value, name] of Object.entries(known)) result = result.replaceAll(value, name);
  for (const [pattern, name] of VOLATILE) result = result.replace(pattern, name);
  // Columns are as wide as the widest age.
  return result.replace(/ {2,}/g, "  ");
}

/** Headers whose value differs from response to response: that they are there is what counts. */
const PRESENCE_ONLY = new Set([
  "audit-id",
  "date",
  "sec-websocket-accept",
  "content-length",
  "etag",
  "last-modified",
]);

export function httpOutcome(answer: HttpAnswer, known: Known): Outcome {
  const headers = Object.entries(answer.headers)
    .map(([name, value]) => `${name}: ${PRESENCE_ONLY.has(name) ? "<any>" : pruned(value, known)}`)
    .sort();
  return [`HTTP ${answer.status}`, ...headers, ...pruned(answer.body, known).split("\n")];
}

/** Lines that only one of the two has, as a diff shows them; equal outcomes have none. */
export function differencesOf(straight: Outcome, other: Outcome): string[] {
  const left = lackedBy(other, straight).map((line) => `- ${line}`);
  const right = lackedBy(straight, other).map((line) => `+ ${line}`);
  if (left.length + right.length > 0) return [...left, ...right];
  return straight.join("\n") === other.join("\n") ? [] : ["the same lines in another order"];
}

function lackedBy(lines: Outcome, of: Outcome): string[] {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return of.filter((line) => {
    const left = counts.get(line) ?? 0;
    counts.set(line, left - 1);
    return left <= 0;
  });
}
