import { describe, expect, it } from "vitest";
import { httpSummary } from "../../../src/cli/load-http.ts";
import { LoadCollector, summaryText } from "../../../src/load/index.ts";
import { loadPlan } from "../../support/load-plan.ts";

describe("the table that a load ends with", () => {
  it("claims nothing and times nothing where nothing came back", () => {
    const text = summaryText(new LoadCollector(loadPlan(), 1, Date.now()).report(false));
    expect(text).toContain("\nverified   nothing, for nothing came back\n\nno errors\n");
    expect(text).not.toContain("p99");
  });

  it("says what was verified where bytes came back", () => {
    const report = new LoadCollector(loadPlan(), 1, Date.now()).report(false);
    const text = summaryText({ ...report, bytes: { sent: 1, received: 1 } });
    expect(text).toContain("\nverified   every byte, against the seeded stream that was sent\n");
  });

  it("gives plain requests their times as finely as they were counted", () => {
    const report = {
      ...{ seconds: 1, requests: 2, perSecond: 2, bytes: 10, byStatus: { 200: 2 }, errors: 0, timeouts: 0 },
      latency: { p50Us: 0, p90Us: 0, p99Us: 2_000, p999Us: 2_000, maxUs: 12_000 },
    };
    const text = httpSummary(report, []);
    expect(text).toContain("p50 < 1 ms  p90 < 1 ms  p99 2.0 ms  p99.9 2.0 ms  max 12.0 ms\n");
  });
});
