import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALL_CASES } from "../../../src/conformance/index.ts";
import { PROXY_DEFECTS } from "../../support/conformance/proxy-defects.ts";
import { TestedDemo, troubles } from "../../support/conformance/tested-demo.ts";

let demo: TestedDemo;
beforeAll(async () => {
  demo = await TestedDemo.start();
});
afterAll(() => demo.stop());

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
    expect(report.cases.map(({ id, verdict }) => `${id} ${verdict}`)).toEqual(
      cases.map(({ id }) => `${id} failed`),
    );
  });
});
