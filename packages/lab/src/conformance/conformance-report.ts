import type { CaseGroup, ConformanceCase } from "./conformance-case.ts";
import type { EndpointProfile } from "./endpoint.ts";

type Verdict = "passed" | "failed" | "skipped";

export interface CaseReport {
  readonly id: string;
  readonly group: CaseGroup;
  readonly requirement: string;
  readonly why: string;
  readonly source: string;
  readonly severity: ConformanceCase["severity"];
  readonly verdict: Verdict;
  /** The observation of a failed case, the reason for skipping, or a measurement. */
  readonly note?: string;
  readonly durationMs: number;
}

/** The result of a run. Its JSON is the contract of `--json` and `--baseline`. */
export interface ConformanceReport {
  readonly version: 1;
  readonly endpoint: string;
  readonly profile: EndpointProfile;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly durationMs: number;
  readonly counts: Readonly<Record<Verdict, number>>;
  readonly cases: readonly CaseReport[];
}

/**
 * JUnit's XML with one suite per group. Failed "should" cases appear as skipped, so that only a
 * "must" fails a build.
 */
export function junitReport(report: ConformanceReport): string {
  const groups = [...new Set(report.cases.map(({ group }) => group))];
  const suites = groups.map((group) =>
    suite(
      group,
      report.cases.filter((one) => one.group === group),
    ),
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="sluice conformance ${xml(report.endpoint)}" time="${seconds(report.durationMs)}">
${suites.join("")}</testsuites>
`;
}

function suite(group: string, cases: readonly CaseReport[]): string {
  const failed = cases.filter(isFailure).length;
  const skipped = cases.filter((one) => one.verdict !== "passed" && !isFailure(one)).length;
  const durationMs = cases.reduce((sum, one) => sum + one.durationMs, 0);
  return `  <testsuite name="${xml(group)}" tests="${cases.length}" failures="${failed}" skipped="${skipped}" time="${seconds(durationMs)}">
${cases.map(testCase).join("")}  </testsuite>
`;
}

function testCase(one: CaseReport): string {
  const start = `    <testcase classname="sluice.conformance.${xml(one.group)}" name="${xml(one.id)}" time="${seconds(one.durationMs)}"`;
  const note = one.note ?? "";
  if (one.verdict === "passed") return `${start}/>\n`;
  if (isFailure(one)) {
    const text = `${one.requirement}\nobserved: ${note}\nsource: ${one.source}`;
    return `${start}>\n      <failure message="${xml(note)}" type="${one.severity}">${xml(text)}</failure>\n    </testcase>\n`;
  }
  const reason = one.verdict === "failed" ? `failed (${one.severity}): ${note}` : note;
  return `${start}>\n      <skipped message="${xml(reason)}"/>\n    </testcase>\n`;
}

function isFailure({ verdict, severity }: CaseReport): boolean {
  return verdict === "failed" && severity === "must";
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3);
}

/** Removes characters that XML 1.0 forbids (section 2.2), including lone surrogates. */
function xml(text: string): string {
  return Buffer.from(text)
    .toString()
    .replace(/[^\t\n\r\x20-\ud7ff\ud800-\udfff\ue000-\ufffd]/g, "\ufffd")
    .replace(/[&<>"'\n\t\r]/g, (character) => `&#${character.charCodeAt(0)};`);
}

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
