import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALL_CASES } from "../../../src/conformance/index.ts";
import { PROXY_DEFECTS } from "../../support/conformance/proxy-defects.ts";
import { TestedDemo, troubles } from "../../support/conformance/tested-demo.ts";

let demo: TestedDemo;
beforeAll(async () => {
  demo = await TestedDemo.start();
});
afterAll(() => demo.stop());

describe("conformance", () => {
  it.each(["web", "web-ws"] as const)("Sluice carries everything to %s", async (pod) => {
    expect(troubles(await demo.run(pod))).toEqual([]);
  });

  it("a hop without a defect changes nothing", async () => {
    expect(troubles(await demo.runThrough({}))).toEqual([]);
  });

  it.each(
    PROXY_DEFECTS.map((defect) => [defect.id, defect] as const),
  )("names the proxy that %s", async (_, defect) => {
    const cases = ALL_CASES.filter(({ id }) => defect.namedBy.includes(id));
    expect(cases).toHaveLength(defect.namedBy.length);
    const report = await demo.runThrough(defect, cases);
    expect(report.cases.map(({ id, verdict }) => `${id} ${verdict}`)).toEqual(
      cases.map(({ id }) => `${id} failed`),
    );
  });
});
