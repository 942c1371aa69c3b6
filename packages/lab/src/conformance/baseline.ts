import type { CaseReport, ConformanceReport } from "./conformance-report.ts";

/** The differences from an earlier run. */
export interface BaselineComparison {
  /** Cases that fail now and did not before, including new cases. */
  readonly broken: readonly CaseReport[];
  /** Cases that failed before and pass now. */
  readonly mended: readonly CaseReport[];
  /** Cases that ran before and are skipped now. */
  readonly lost: readonly CaseReport[];
}

export function compareWith(baseline: ConformanceReport, report: ConformanceReport): BaselineComparison {
  const earlier = new Map(baseline.cases.map(({ id, verdict }) => [id, verdict]));
  const now = (verdict: CaseReport["verdict"]) => report.cases.filter((one) => one.verdict === verdict);
  return {
    broken: now("failed").filter(({ id }) => earlier.get(id) !== "failed"),
    mended: now("passed").filter(({ id }) => earlier.get(id) === "failed"),
    lost: now("skipped").filter(({ id }) => (earlier.get(id) ?? "skipped") !== "skipped"),
  };
}

/** Throws Error if the text is not a `--json` report. */
export function parseReport(text: string): ConformanceReport {
  const report: unknown = JSON.parse(text);
  const { version, cases } = (report ?? {}) as Partial<ConformanceReport>;
  const isCase = (one: unknown): boolean => {
    const { id, verdict } = (one ?? {}) as Partial<CaseReport>;
    return typeof id === "string" && typeof verdict === "string";
  };
  if (version !== 1 || !Array.isArray(cases) || !cases.every(isCase))
    throw new Error("is not a report of sluice conformance --json");
  return report as ConformanceReport;
}

export function comparisonText({ broken, mended, lost }: BaselineComparison): string {
  const lines = (title: string, cases: readonly CaseReport[]): string =>
    cases
      .map(
        ({ id, severity, note }) =>
          `  ${title}  ${id} (${severity})${note === undefined ? "" : `: ${note}`}\n`,
      )
      .join("");
  const all = lines("broken", broken) + lines("mended", mended) + lines("lost  ", lost);
  return `compared with the baseline:\n${all === "" ? "  nothing changed\n" : all}`;
}
