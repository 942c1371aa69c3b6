import { adviceByCase } from "./advice.ts";
import type { CaseReport, ConformanceReport } from "./conformance-report.ts";

const MARKS = { passed: "ok", failed: "FAILED", skipped: "skipped" } as const;

/** One line for a case, shown during the run. */
export function caseLine({ id, verdict, note, durationMs, severity }: CaseReport): string {
  const mark = verdict === "failed" && severity !== "must" ? `failed (${severity})` : MARKS[verdict];
  const detail = note === undefined ? "" : `: ${note}`;
  return `${id}  ${mark}${verdict === "skipped" ? "" : `, ${durationMs} ms`}${detail}`;
}

const MAX_NOTE = 300;
const MENDING = "How to mend a hop; --html FILE has the settings of nginx, HAProxy, Envoy and others";

/** The table of groups, failures with their reasons and fixes, and the totals. */
export function textReport(report: ConformanceReport): string {
  const groups = [...new Set(report.cases.map(({ group }) => group))];
  const rows = groups.map((group) => {
    const cases = report.cases.filter((one) => one.group === group);
    const count = (verdict: CaseReport["verdict"]): string =>
      String(cases.filter((one) => one.verdict === verdict).length);
    return [group, count("passed"), count("failed"), count("skipped")];
  });
  const failed = report.cases.filter(({ verdict }) => verdict === "failed");
  const untried = new Map<string, number>();
  for (const { verdict, note = "" } of report.cases)
    if (verdict === "skipped") untried.set(note, (untried.get(note) ?? 0) + 1);
  const reasons = Array.from(untried, ([note, count]) => `  ${count}: ${oneLine(note)}\n`);
  const details = failed.map(
    ({ id, severity, requirement, note, source }) =>
      `${id} (${severity})\n  ${requirement}\n  observed: ${oneLine(note ?? "nothing")}\n  source: ${source}\n`,
  );
  const advices = Array.from(
    adviceByCase(report.cases),
    ([{ title, text }, ids]) =>
      `  ${title} (${ids.length === 1 ? ids[0] : `${ids.length} cases`})\n    ${text}\n`,
  );
  const skipped = reasons.length === 0 ? "" : `Cases that were skipped, by reason\n${reasons.join("")}\n`;
  const mending = advices.length === 0 ? "" : `${MENDING}\n${advices.join("")}\n`;
  const { passed, failed: failures } = report.counts;
  return `${notTried(report)}${table([["group", "passed", "failed", "skipped"], ...rows])}
${details.length === 0 ? "" : `${details.join("\n")}\n`}${mending}${skipped}${report.endpoint}: ${passed} passed, ${failures} failed, ${report.counts.skipped} skipped in ${(report.durationMs / 1_000).toFixed(1)} s
`;
}

/** Lists untested parts first, because the table does not show them at a glance. */
function notTried({ cases, counts }: ConformanceReport): string {
  const reasons = new Map<string, Set<string>>();
  const groups = new Set(cases.map(({ group }) => group));
  for (const group of groups) {
    const own = cases.filter((one) => one.group === group);
    if (own.some(({ verdict }) => verdict !== "skipped")) continue;
    for (const { note = "" } of own) reasons.set(note, (reasons.get(note) ?? new Set()).add(group));
  }
  if (reasons.size === 0) return "";
  const title = counts.passed + counts.failed === 0 ? "NOTHING COULD BE TRIED" : "Not tried at all";
  const lines = Array.from(reasons, ([note, own]) => `  ${[...own].join(", ")}: ${oneLine(note)}\n`);
  return `${title}\n${lines.join("")}\n`;
}

/** Peers sometimes answer with HTML pages. */
function oneLine(note: string): string {
  const line = note.replaceAll(/\s+/g, " ").trim();
  return line.length > MAX_NOTE ? `${line.slice(0, MAX_NOTE)}…` : line;
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join("  ")
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join("");
}
