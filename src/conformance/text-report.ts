import { adviceByCase } from "./advice.ts";
import type { CaseReport, ConformanceReport } from "./conformance-report.ts";

const MARKS = { passed: "ok", failed: "FAILED", skipped: "skipped" } as const;

/** One line for a case, as it is shown while the cases run. */
export function caseLine({ id, verdict, note, durationMs, severity }: CaseReport): string {
  const mark = verdict === "failed" && severity !== "must" ? `failed (${severity})` : MARKS[verdict];
  const detail = note === undefined ? "" : `: ${note}`;
  return `${id}  ${mark}${verdict === "skipped" ? "" : `, ${durationMs} ms`}${detail}`;
}

const MENDING = "How to mend a hop; --html FILE has the settings of nginx, HAProxy, Envoy and others";

/** The table of groups, what failed with its reason, how it is mended, and the sum. */
export function textReport(report: ConformanceReport): string {
  const groups = [...new Set(report.cases.map(({ group }) => group))];
  const rows = groups.map((group) => {
    const cases = report.cases.filter((one) => one.group === group);
    const count = (verdict: CaseReport["verdict"]): string =>
      String(cases.filter((one) => one.verdict === verdict).length);
    return [group, count("passed"), count("failed"), count("skipped")];
  });
  const failed = report.cases.filter(({ verdict }) => verdict === "failed");
  const details = failed.map(
    ({ id, severity, requirement, note, source }) =>
      `${id} (${severity})\n  ${requirement}\n  observed: ${note ?? "nothing"}\n  source: ${source}\n`,
  );
  const advices = Array.from(
    adviceByCase(report.cases),
    ([{ title, text }, ids]) =>
      `  ${title} (${ids.length === 1 ? ids[0] : `${ids.length} cases`})\n    ${text}\n`,
  );
  const mending = advices.length === 0 ? "" : `${MENDING}\n${advices.join("")}\n`;
  const { passed, failed: failures, skipped } = report.counts;
  return `${table([["group", "passed", "failed", "skipped"], ...rows])}
${details.length === 0 ? "" : `${details.join("\n")}\n`}${mending}${report.endpoint}: ${passed} passed, ${failures} failed, ${skipped} skipped in ${(report.durationMs / 1_000).toFixed(1)} s
`;
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
