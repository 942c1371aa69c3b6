import { escapeHtml, htmlPage } from "../load/html-report.ts";
import { type Advice, adviceFor } from "./advice.ts";
import type { CaseGroup } from "./conformance-case.ts";
import {
  type BaselineComparison,
  type CaseReport,
  type ConformanceReport,
  comparisonText,
} from "./conformance-report.ts";

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

/** One self-contained page: failures, why they matter, how to fix hops, and every case. */
export function conformancePage(report: ConformanceReport, comparison?: BaselineComparison): string {
  const { passed, failed, skipped } = report.counts;
  const failures = report.cases.filter(({ verdict }) => verdict === "failed");
  const seconds = (report.durationMs / 1_000).toFixed(1);
  return htmlPage(
    `sluice conformance: ${report.endpoint}`,
    STYLE,
    `<h1>Kubernetes streams over ${escapeHtml(report.endpoint)}</h1>
<p>${escapeHtml(report.startedAt)}, ${seconds} s, as ${escapeHtml(report.profile)}:
<b class="passed">${passed} passed</b>, <b class="failed">${failed} failed</b>, <b class="skipped">${skipped} skipped</b>.</p>
${comparison === undefined ? "" : `<h2>Since the baseline</h2>\n<pre>${escapeHtml(comparisonText(comparison))}</pre>\n`}<h2>What failed</h2>
${failures.length === 0 ? "<p>Nothing.</p>\n" : failures.map(failureSection).join("")}${adviceSections(failures)}<h2>All cases</h2>
<table><tr><th>case</th><th>severity</th><th>verdict</th><th class="number">ms</th><th>observed</th></tr>
${report.cases.map(row).join("")}</table>
`,
  );
}

function failureSection({ id, severity, requirement, why, source, note }: CaseReport): string {
  return `<section><h3>${escapeHtml(id)} <small>${severity}</small></h3>
<p>${escapeHtml(requirement)}</p>
<p><b>Observed:</b> ${escapeHtml(note ?? "")}</p>
<p><b>Why it matters:</b> ${escapeHtml(why)} <small>${escapeHtml(source)}</small></p></section>
`;
}

function adviceSections(failures: readonly CaseReport[]): string {
  const sections = Array.from(adviceByCase(failures), ([{ title, text, settings }, ids]) => {
    const rows = Object.entries(settings).map(
      ([product, lines]) => `<dt>${escapeHtml(product)}</dt><dd><pre>${escapeHtml(lines)}</pre></dd>`,
    );
    return `<section><h3>${escapeHtml(title)}</h3>
<p>${escapeHtml(text)}</p>
<p><small>for ${ids.map(escapeHtml).join(", ")}</small></p>
<dl>${rows.join("")}</dl></section>
`;
  });
  return sections.length === 0
    ? ""
    : `<h2>How to mend it</h2>\n<p>Run again after a change: what was skipped because of a failure is tried then.</p>\n${sections.join("")}`;
}

function row({ id, severity, verdict, durationMs, note, requirement }: CaseReport): string {
  return `<tr title="${escapeHtml(requirement)}"><td>${escapeHtml(id)}</td><td>${severity}</td><td class="${verdict}">${verdict}</td><td class="number">${durationMs}</td><td>${escapeHtml(note ?? "")}</td></tr>
`;
}

const STYLE = `
.passed { color: #2b8a3e; } .failed { color: #c2255c; } .skipped { color: #687380; }
h3 { font-size: 1rem; margin-bottom: .25rem; } h3 small { font-weight: normal; color: #687380; } section p { margin: .25rem 0; }
small { color: #687380; } dt { font-weight: 600; margin-top: .5rem; } dd { margin: 0; } td { vertical-align: top; font-size: 13px; }
`;

/** Each piece of advice once, with the ids of the failed cases that it fixes. */
function adviceByCase(
  cases: readonly { readonly id: string; readonly group: CaseGroup; readonly verdict: string }[],
): ReadonlyMap<Advice, readonly string[]> {
  const all = new Map<Advice, string[]>();
  for (const one of cases) {
    if (one.verdict !== "failed") continue;
    const advice = adviceFor(one);
    all.set(advice, [...(all.get(advice) ?? []), one.id]);
  }
  return all;
}
