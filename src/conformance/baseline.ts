import type { CaseReport, ConformanceReport } from "./conformance-report.ts";

/** What differs from an earlier run. */
export interface BaselineComparison {
  /** Failed now, and did not then; cases that are new are among them. */
  readonly broken: readonly CaseReport[];
  /** Failed then, and passed now. */
  readonly mended: readonly CaseReport[];
  /** Passed or failed then, and skipped now. */
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

/** Throws Error where the text is no report of `--json`. */
export function parseReport(text: string): ConformanceReport {
  const report: unknown = JSON.parse(text);
  const { version, cases } = (report ?? {}) as Partial<ConformanceReport>;
  const isCase = (one: unknown): boolean => {
    const { id, verdict } = (one ?? {}) as Partial<CaseReport>;
    return typeof id === "string" && typeof verdict === "string";
  };
  if (version !== 1 || !Array.isArray(cases) || !cases.every(isCase))
    throw new Error("is no report of sluice conformance --json");
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
