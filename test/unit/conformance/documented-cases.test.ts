import { expect, it } from "vitest";
import { ALL_CASES } from "../../../packages/lab/src/conformance/all-cases.ts";
import { CASE_GROUPS, type ConformanceCase } from "../../../packages/lab/src/conformance/conformance-case.ts";

const HEAD = `# Cases of sluice conformance

What each case of [\`sluice conformance\`](conformance.md) requires. A case is a \`must\`, or as
marked: a \`should\`, or \`info\`, which only measures. Reports (\`--html\`, \`--json\`) also
say why it matters, and its source: a KEP, an upstream test, an issue or an RFC. A test writes this
page from \`packages/lab/src/conformance/cases\`.
`;

/** One row for the same case over several transports. `vitest run -u` writes it. */
it("docs/conformance-cases.md lists every case", async () => {
  const sections = CASE_GROUPS.map((group) => {
    const rows = new Map<string, ConformanceCase[]>();
    for (const one of ALL_CASES) {
      const key = `${one.severity} ${one.requirement}`;
      if (one.group === group) rows.set(key, [...(rows.get(key) ?? []), one]);
    }
    return `## ${group}\n\n| case | requirement |\n|---|---|\n${Array.from(rows.values(), row).join("")}`;
  });
  const text = `${HEAD}\n${sections.join("\n")}`;
  await expect(text).toMatchFileSnapshot("../../../docs/conformance-cases.md");
});

function row(cases: readonly ConformanceCase[]): string {
  const [first] = cases;
  if (first === undefined) return "";
  const [, family = ""] = /^(.*\/)/.exec(first.id) ?? [];
  const leaves = cases.map(({ id }) => id.slice(family.length)).join(",");
  const ids = cases.length === 1 ? first.id : `${family}{${leaves}}`;
  const mark = first.severity === "must" ? "" : ` (${first.severity})`;
  return `| \`${ids}\`${mark} | ${cell(first.requirement)} |\n`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
