import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALL_CASES } from "../../../packages/lab/src/conformance/all-cases.ts";
import type { ConformanceReport } from "../../../packages/lab/src/conformance/conformance-report.ts";
import type { ProxyDefect } from "../../support/conformance/broken-proxy.ts";
import { PROXY_DEFECTS } from "../../support/conformance/proxy-defects.ts";
import { TestedDemo, troubles } from "../../support/conformance/tested-demo.ts";
import { isFullRun } from "../../support/real-parts.ts";

let demo: TestedDemo;
beforeAll(async () => {
  demo = await TestedDemo.start();
});
afterAll(async () => {
  await demo.stop();
  const isWhole = rows.length === PROXY_DEFECTS.length;
  if (isWhole && process.env.SLUICE_WRITE_DOCS === "1") writeFileSync(document, documentOf(rows));
});

/** False alarms would show in some runs only: where evidence is written, each good endpoint is tried ten times. */
const GOOD_RUNS = isFullRun ? 10 : 1;
const NAMED_MS = 60_000;
/** A command has to outrun a client that does not read: nothing else runs beside. */
const OF_STALLS = /^(?:slow-reader|backpressure)\//;

const document = path.resolve(import.meta.dirname, "../../../docs/evidence/conformance-defects.md");
const rows: { defect: ProxyDefect; report: ConformanceReport }[] = [];
const goodRuns: ConformanceReport[] = [];

/** Every case at small sizes: 20 s on a quiet machine. */
const WHOLE_RUN_MS = isFullRun ? 600_000 : 180_000;

describe("conformance", () => {
  it("Sluice carries everything, translated", {
    timeout: WHOLE_RUN_MS,
    repeats: GOOD_RUNS - 1,
  }, async () => {
    const report = await demo.run("web");
    goodRuns.push(report);
    expect(troubles(report)).toEqual([]);
  });

  it("Sluice carries everything, passed through, and a plain hop changes nothing", {
    timeout: WHOLE_RUN_MS,
    repeats: GOOD_RUNS - 1,
  }, async () => {
    const report = await demo.runThrough({}, { pod: "web-ws" });
    goodRuns.push(report);
    expect(troubles(report)).toEqual(["http2/extended-connect skipped: without TLS there is no ALPN"]);
  });

  const byName = (defects: readonly ProxyDefect[]) => defects.map((defect) => [defect.id, defect] as const);
  const isNamed = async (_: string, defect: ProxyDefect): Promise<void> => {
    const cases = ALL_CASES.filter(({ id }) => defect.namedBy.includes(id));
    expect(cases).toHaveLength(defect.namedBy.length);
    const report = await demo.runThrough(defect, { cases });
    rows.push({ defect, report });
    expect(report.cases.map(({ id, verdict }) => `${id} ${verdict}`)).toEqual(
      cases.map(({ id }) => `${id} failed`),
    );
  };
  const title = "names the proxy that %s";
  const isOfStalls = ({ namedBy }: ProxyDefect): boolean => namedBy.some((id) => OF_STALLS.test(id));
  it.each(byName(PROXY_DEFECTS.filter(isOfStalls)))(title, { timeout: NAMED_MS }, isNamed);
  // Most of them wait for a time-out.
  it.concurrent.each(byName(PROXY_DEFECTS.filter((one) => !isOfStalls(one))))(
    title,
    { timeout: NAMED_MS },
    isNamed,
  );
});

function documentOf(results: typeof rows): string {
  const failed = goodRuns.filter(({ counts }) => counts.failed > 0).length;
  const inOrder = PROXY_DEFECTS.flatMap(({ id }) => results.filter(({ defect }) => defect.id === id));
  const lines = inOrder.map(({ defect: { id, what }, report: { cases } }) => {
    const names = cases.map((one) => `\`${one.id}\``).join("<br>");
    return `| \`${id}\` | ${what} | ${names} |\n`;
  });
  return `# Defects that conformance names

\`sluice conformance\` names each of ${results.length} defects, injected one at a time into a hop before Sluice's demo.
Without a defect, ${goodRuns.length} runs of all ${ALL_CASES.length} cases, half of them through the same hop, had ${failed === 0 ? "no failure" : `failures in ${failed} runs`}.
Written by \`SLUICE_WRITE_DOCS=1 npx vitest run test/integration/conformance\`.

| defect | the hop | failing cases |
|---|---|---|
${lines.join("")}`;
}
