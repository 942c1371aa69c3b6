import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALL_CASES, type ConformanceReport } from "../../../src/conformance/index.ts";
import type { ProxyDefect } from "../../support/conformance/broken-proxy.ts";
import { PROXY_DEFECTS } from "../../support/conformance/proxy-defects.ts";
import { TestedDemo, troubles } from "../../support/conformance/tested-demo.ts";

let demo: TestedDemo;
beforeAll(async () => {
  demo = await TestedDemo.start();
});
afterAll(async () => {
  await demo.stop();
  const isWhole = rows.length === PROXY_DEFECTS.length;
  if (isWhole && process.env.SLUICE_WRITE_DOCS === "1") writeFileSync(document, documentOf(rows));
});

const document = path.resolve(import.meta.dirname, "../../../docs/evidence/conformance-defects.md");
const rows: { defect: ProxyDefect; report: ConformanceReport }[] = [];

/** Every case at small sizes: 20 s on a quiet machine. */
const WHOLE_RUN_MS = 180_000;

describe("conformance", () => {
  it("Sluice carries everything, translated", { timeout: WHOLE_RUN_MS }, async () => {
    expect(troubles(await demo.run("web"))).toEqual([]);
  });

  it("Sluice carries everything, passed through, and a plain hop changes nothing", {
    timeout: WHOLE_RUN_MS,
  }, async () => {
    expect(troubles(await demo.runThrough({}, { pod: "web-ws" }))).toEqual([
      "http2/extended-connect skipped: without TLS there is no ALPN",
    ]);
  });

  it.each(
    PROXY_DEFECTS.map((defect) => [defect.id, defect] as const),
  )("names the proxy that %s", async (_, defect) => {
    const cases = ALL_CASES.filter(({ id }) => defect.namedBy.includes(id));
    expect(cases).toHaveLength(defect.namedBy.length);
    const report = await demo.runThrough(defect, { cases });
    rows.push({ defect, report });
    expect(report.cases.map(({ id, verdict }) => `${id} ${verdict}`)).toEqual(
      cases.map(({ id }) => `${id} failed`),
    );
  });
});

function documentOf(results: typeof rows): string {
  const lines = results.map(({ defect: { id, what }, report: { cases } }) => {
    const names = cases.map((one) => `\`${one.id}\``).join("<br>");
    const note = (cases[0]?.note ?? "").replaceAll("|", "\\|").replaceAll("\n", " ").slice(0, 160);
    return `| \`${id}\` | ${what} | ${names} | ${note} |\n`;
  });
  return `# Defects that conformance names

Written by \`SLUICE_WRITE_DOCS=1 npx vitest run test/integration/conformance\`; not edited by hand. A hop in front of Sluice's demo has one defect at
a time. Each of the ${results.length} is named by the cases beside it; without a defect the same hop passes every case.

| defect | what the hop does | named by | observed (the first) |
|---|---|---|---|
${lines.join("")}`;
}
