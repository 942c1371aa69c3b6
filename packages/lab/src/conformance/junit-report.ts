import type { CaseReport, ConformanceReport } from "./conformance-report.ts";

/**
 * JUnit's XML: one suite per group. Failed "should" cases appear as skipped, so that only a "must"
 * fails a build.
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

/** Removes characters that XML 1.0 forbids (section 2.2), lone surrogates included. */
function xml(text: string): string {
  return Buffer.from(text)
    .toString()
    .replace(/[^\t\n\r\x20-\ud7ff\ud800-\udfff\ue000-\ufffd]/g, "\ufffd")
    .replace(/[&<>"'\n\t\r]/g, (character) => `&#${character.charCodeAt(0)};`);
}
