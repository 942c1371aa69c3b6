import { escapeHtml, htmlPage } from "../load/index.ts";
import { adviceByCase } from "./advice.ts";
import {
  type BaselineComparison,
  type CaseReport,
  type ConformanceReport,
  comparisonText,
} from "./conformance-report.ts";

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
