import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type {
  CaseReport,
  ConformanceReport,
} from "../../../packages/lab/src/conformance/conformance-report.ts";
import { evidenceTable } from "../evidence-table.ts";
import { HOP_IDLE_SCALE } from "./configured-hops.ts";
import { ATTACH_WITHOUT_INPUT, type KnownFailure, TRUNCATION, UNREAD_INPUT } from "./known-failures.ts";

const document = path.resolve(import.meta.dirname, "../../../docs/evidence/conformance.md");
const MAX_NOTE = 110;

/** Defects that are explained once, above the tables, with the cases that fail because of them. */
const KNOWN: readonly (readonly [string, KnownFailure, string])[] = [
  ["K1", TRUNCATION, "slow-reader"],
  ["K2", ATTACH_WITHOUT_INPUT, "attach/stays-open/websocket-v4"],
  ["K3", UNREAD_INPUT, "closing/unread-input"],
];

const HEAD = `# Conformance of servers and hops

Sluice passes every case; popular hops pass with the settings that \`sluice conformance --html\` advises.

- Hops stand in front of Sluice's demo, first by default, then with the advice for what failed.
- Transfers are 2 to 6 MiB. Silences (60, 120, 300 s) and the hops' time-outs are divided by ${1 / HOP_IDLE_SCALE}.
- Untried: the advice for Traefik and for cloud load balancers.
- Injected defects: [conformance-defects.md](conformance-defects.md).
- \`SLUICE_WRITE_DOCS=1 npx vitest run test/real/conformance.test.ts\` writes the rows and sections of what
  it tried; for a cluster add \`--config test/cluster/vitest.config.ts test/cluster/conformance.test.ts\`.

Known failures, named beside their number; a server with others has a section:

${KNOWN.map(([name, { text }, cases]) => `- ${name} (\`${cases}\`): ${text}.`).join("\n")}

`;
const TABLE_HEAD = "| server or hop | passed | failed | skipped | date |\n|---|---|---|---|---|\n";

/**
 * With SLUICE_WRITE_DOCS=1 writes a report into docs/evidence/conformance.md, in place of the last
 * one with its name.
 */
export function publish(name: string, report: ConformanceReport, known: readonly KnownFailure[] = []): void {
  if (process.env.SLUICE_WRITE_DOCS !== "1") return;
  const { rows, sections } = parse(readFileSync(document, "utf8"));
  const { passed, failed, skipped } = report.counts;
  const codes = codesOf(report, known);
  const explained = codes === undefined || codes.length === 0 ? "" : `: ${codes.join(", ")}`;
  rows.set(
    name,
    `| ${name} | ${passed} | ${failed}${explained} | ${skipped} | ${report.startedAt.slice(0, 10)} |\n`,
  );
  sections.set(name, codes === undefined ? sectionOf(name, report, known) : "");
  const products = [...rows.keys()].map(productOf);
  const names = [...rows.keys()].toSorted(
    (one, other) => products.indexOf(productOf(one)) - products.indexOf(productOf(other)),
  );
  const textOf = (texts: ReadonlyMap<string, string>) => names.map((key) => texts.get(key) ?? "").join("");
  writeFileSync(document, `${HEAD}${TABLE_HEAD}${textOf(rows)}${textOf(sections)}`);
}

/** The product of a row; rows of one product stay together. */
function productOf(name: string): string {
  return name.split(/[ ,]/)[0] ?? "";
}

function parse(text: string): { rows: Map<string, string>; sections: Map<string, string> } {
  const [table = "", ...parts] = text.split(/^(?=\n## )/m);
  const rows = [...table.matchAll(/^\| ([^|]+) \| \d.*\n/gm)];
  return {
    rows: new Map(rows.map((row) => [row[1] ?? "", row[0]])),
    sections: new Map(parts.map((part) => [part.slice("\n## ".length).split("\n")[0] ?? "", part])),
  };
}

/** What explains every failure of a report; undefined if any failure has no explanation. */
function codesOf({ cases }: ConformanceReport, known: readonly KnownFailure[]): string[] | undefined {
  const failed = cases.filter(({ verdict }) => verdict === "failed");
  const entries = KNOWN.filter(([, entry]) => known.includes(entry));
  if (!failed.every(({ id }) => entries.some(([, entry]) => entry.cases.test(id)))) return undefined;
  return entries.flatMap(([code, entry]) => (failed.some(({ id }) => entry.cases.test(id)) ? [code] : []));
}

function sectionOf(name: string, { cases }: ConformanceReport, known: readonly KnownFailure[]): string {
  const failed = cases.filter(({ verdict }) => verdict === "failed");
  if (failed.length === 0) return "";
  const lines = new Map<string, { readonly one: CaseReport; readonly names: string[] }>();
  for (const one of failed) {
    const [, family = "", leaf = ""] = /^(.*\/)?([^/]*)$/.exec(one.id) ?? [];
    // Cases that fail alike may differ in measured figures, which are left out of the key.
    const key = [family, one.severity, noteOf(one).replaceAll(/[\d.]+/g, "0")].join("\n");
    const line = lines.get(key) ?? { one, names: [] };
    lines.set(key, line);
    line.names.push(leaf);
  }
  const rows = Array.from(lines.values(), ({ one, names }) => {
    const family = one.id.slice(0, one.id.lastIndexOf("/") + 1);
    const leaf = names.length === 1 ? names[0] : `{${names.join(",")}}`;
    const explained = KNOWN.filter(([, entry]) => known.includes(entry) && entry.cases.test(one.id));
    const reasons = explained.map(([code]) => code).join(", ");
    return [`\`${family}${leaf}\``, one.severity, reasons || noteOf(one)];
  });
  return `\n## ${name}\n\n${evidenceTable(["case", "severity", "observed"], rows)}\n`;
}

function noteOf({ note = "" }: CaseReport): string {
  // How a connection that was cut in silence ends differs from run to run.
  const text = note
    .replace(/^(the session ended after [\d.]+ s of silence): .*/s, "$1")
    .replaceAll("|", "\\|")
    .replaceAll("\n", " ");
  return text.length > MAX_NOTE ? `${text.slice(0, MAX_NOTE).trimEnd()}…` : text.trimEnd();
}
