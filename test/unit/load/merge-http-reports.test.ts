import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LatencyCounts } from "../../../packages/lab/src/load/latency-counts.ts";
import { mergeHttpReports, missingParts, readReports } from "../../../packages/lab/src/load/read-reports.ts";
import { httpReport } from "../../support/load-plan.ts";

const START_MS = Date.parse("2026-01-01T00:00:00Z");

describe("reports of plain requests", () => {
  it("add up to what one program would have counted", () => {
    const times = fc.array(fc.double({ min: 0, max: 60_000, noNaN: true }));
    fc.assert(
      fc.property(times, times, (some, others) => {
        const merged = mergeHttpReports([
          { name: "0.json", report: httpReport(some, { index: 0, of: 2 }) },
          { name: "1.json", report: httpReport(others, { index: 1, of: 2 }, START_MS + 500) },
        ]);
        const whole = httpReport([...some, ...others]);
        const { latency, latencies, requests, bytes, byStatus } = whole;
        expect(merged).toMatchObject({
          latency,
          latencies,
          requests,
          bytes,
          byStatus,
          errors: 2,
          seconds: 2.5,
        });
        expect(merged.parts).toEqual({ of: 2, present: [0, 1], startSpreadMs: 500 });
      }),
    );
  });

  it("are refused where they are not of one load", () => {
    const first = { name: "0.json", report: httpReport([1], { index: 0, of: 3 }) };
    const merge = (report: ReturnType<typeof httpReport>) =>
      mergeHttpReports([first, { name: "1.json", report }]);
    const other = httpReport([1], { index: 1, of: 3 });
    expect(missingParts(merge(other))).toEqual([2]);
    expect(() => merge({ ...other, plan: { ...other.plan, connections: 5 } })).toThrow(
      "1.json: connections is 5, but 4 in 0.json",
    );
    expect(() => merge(first.report)).toThrow("1.json: part 0 of 3 is in 0.json, too");
    expect(() => merge(httpReport([1], { index: 1, of: 3 }, START_MS + 60_000))).toThrow(
      "did not run side by side",
    );
  });

  it.each([
    [{ requests: -1 }, "requests"],
    [{ byStatus: { 200: "many" } }, "byStatus"],
    [{ latencies: { counts: [[1e9, 1]], maxUs: 1 } }, "latencies"],
    [{ parts: { of: 1, present: [1], startSpreadMs: 0 } }, "parts.present"],
  ])("are refused with %j", (change, wrong) => {
    const text = JSON.stringify({ ...httpReport([1]), ...change });
    expect(() => readReports(`log ${text}`)).toThrow(`${wrong} of its report is wrong`);
  });

  it("count what was to be sent while an answer was awaited", () => {
    const counts = new LatencyCounts();
    counts.recordExpected(45, 10);
    counts.recordExpected(5, 10);
    expect([counts.total, counts.maxUs, counts.percentileUs(0.01)]).toEqual([5, 45_000, 5_023]);
  });
});
