import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { CaseReport, ConformanceReport } from "../../../src/conformance/index.ts";
import { HOP_IDLE_SCALE } from "./configured-hops.ts";
import type { KnownFailure } from "./known-failures.ts";

const document = path.resolve(import.meta.dirname, "../../../docs/evidence/conformance.md");
const MAX_NOTE = 200;

const HEAD = `# Conformance of servers and hops

Written by \`SLUICE_WRITE_DOCS=1 npx vitest run test/real/conformance.test.ts\`, and by the same with \`--config test/cluster/vitest.config.ts
test/cluster/conformance.test.ts\` for a whole cluster: a run replaces the rows and sections of what it tried. Transfers are 2 to 6 MiB; silences of 60, 120 and
300 s, and the default time-outs of the hops, are divided by ${1 / HOP_IDLE_SCALE}. Hops stand in front of Sluice's demo. A hop with advice has the
settings that \`--html\` shows for what failed before, each pasted where it says. Traefik was not at hand: its advice is untried, and so is that for
cloud load balancers. docs/evidence/conformance-defects.md has the injected defects.

`;
const TABLE_HEAD = "| server or hop | passed | failed | skipped | date |\n|---|---|---|---|---|\n";

/** With SLUICE_WRITE_DOCS=1 puts a report into docs/evidence/conformance.md, in place of the last one of that name. */
export function publish(name: string, report: ConformanceReport, known: readonly KnownFailure[] = []): void {
  if (process.env.SLUICE_WRITE_DOCS !== "1") return;
  const { rows, sections } = parse(readFileSync(document, "utf8"));
  const { passed, failed, skipped } = report.counts;
  rows.set(name, `| ${name} | ${passed} | ${failed} | ${skipped} | ${report.startedAt.slice(0, 10)} |\n`);
  sections.set(name, sectionOf(name, report, known));
  const products = [...rows.keys()].map(productOf);
  const names = [...rows.keys()].toSorted(
    (one, other) => products.indexOf(productOf(one)) - products.indexOf(productOf(other)),
  );
  const textOf = (texts: ReadonlyMap<string, string>) => names.map((key) => texts.get(key) ?? "").join("");
  writeFileSync(document, `${HEAD}${TABLE_HEAD}${textOf(rows)}${textOf(sections)}`);
}

/** Rows of one product stay together. */
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

function sectionOf(name: string, { cases }: ConformanceReport, known: readonly KnownFailure[]): string {
  const failed = cases.filter(({ verdict }) => verdict === "failed");
  if (failed.length === 0) return "";
  const lines = failed.map(lineOf).join("");
  const explained = known
    .filter((one) => failed.some(({ id }) => one.cases.test(id)))
    .map(({ text, ...one }) => {
      const ids = failed.filter(({ id }) => one.cases.test(id)).map(({ id }) => `\`${id}\``);
      return `- Known: ${text} (${ids.join(", ")}).\n`;
    });
  const list = explained.length === 0 ? "" : `\n${explained.join("")}`;
  return `\n## ${name}\n\n| case | severity | observed |\n|---|---|---|\n${lines}${list}`;
}

function lineOf({ id, severity, note = "" }: CaseReport): string {
  const text = note.replaceAll("|", "\\|").replaceAll("\n", " ").slice(0, MAX_NOTE);
  return `| \`${id}\` | ${severity} | ${text} |\n`;
}
