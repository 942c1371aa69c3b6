import { expect, it } from "vitest";
import { ALL_CASES, CASE_GROUPS, type ConformanceCase } from "../../../packages/lab/src/conformance/index.ts";

/** One row for the same case over several transports. `vitest run -u` writes it. */
it("docs/conformance-cases.md lists every case", async () => {
  const sections = CASE_GROUPS.map((group) => {
    const rows = new Map<string, ConformanceCase[]>();
    for (const one of ALL_CASES) {
      if (one.group === group) rows.set(one.requirement, [...(rows.get(one.requirement) ?? []), one]);
    }
    return `## ${group}\n\n| case | severity | requirement | why it matters | source |\n|---|---|---|---|---|\n${Array.from(rows.values(), row).join("")}`;
  });
  const text = `# Cases of sluice conformance\n\nGenerated from \`packages/lab/src/conformance/cases\` by a test.\n[Conformance](conformance.md) explains how to run them.\n\n${sections.join("\n")}`;
  await expect(text).toMatchFileSnapshot("../../../docs/conformance-cases.md");
});

function row(cases: readonly ConformanceCase[]): string {
  const [first] = cases;
  if (first === undefined) return "";
  const ids = cases.map(({ id }) => `\`${id}\``).join("<br>");
  return `| ${ids} | ${first.severity} | ${cell(first.requirement)} | ${cell(first.why)} | ${cell(first.source)} |\n`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
