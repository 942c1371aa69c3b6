import { describe, expect, it, vi } from "vitest";
import { LoadCollector } from "../../../packages/lab/src/load/load-report.ts";
import { summaryText } from "../../../packages/lab/src/load/summary-text.ts";
import { publishHttp } from "../../../src/cli/load/load-result.ts";
import { httpReport, loadPlan } from "../../support/load-plan.ts";

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

  it("gives plain requests their times as finely as they were counted", async () => {
    let text = "";
    const written = vi.spyOn(process.stdout, "write").mockImplementation((part) => {
      text += part;
      return true;
    });
    await publishHttp(httpReport([0.5, 2, 12], { index: 1, of: 3 }), [], {
      json: undefined,
      html: undefined,
    });
    written.mockRestore();
    expect(text).toContain("ran 2 s\npart       1 of 3\nrequests   3 (2/s), 30 B\n");
    expect(text).toContain("p50 2.0 ms  p90 12.0 ms  p99 12.0 ms  p99.9 12.0 ms  max 12.0 ms\n");
  });
});
