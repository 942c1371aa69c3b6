import { describe, expect, it } from "vitest";
import { htmlReport } from "../../../packages/lab/src/load/html-report.ts";
import { LoadCollector } from "../../../packages/lab/src/load/load-report.ts";
import { Recorder } from "../../../packages/lab/src/load/recorder.ts";
import { judge, parseThreshold, SESSION_METRICS } from "../../../packages/lab/src/load/thresholds.ts";
import { loadPlan } from "../../support/load-plan.ts";

/** Each second ends at its time, in milliseconds since the start. */
function reportOf(...endsMs: readonly number[]) {
  const collector = new LoadCollector(loadPlan({ path: "/p" }), 1, 0);
  const recorder = new Recorder();
  for (const [second, untilMs] of endsMs.entries()) {
    recorder.latency("message", 10);
    recorder.counts.sentBytes = 1_000;
    recorder.counts.finished = 1;
    collector.add(recorder.interval(second, { untilMs, cpuShare: 0, lagMs: 0 }));
  }
  return collector.report(false);
}

async function drawn(...endsMs: readonly number[]): Promise<number[]> {
  const page = await htmlReport(reportOf(...endsMs));
  const [, json = ""] = /id="data">(.*?)<\/script>/.exec(page) ?? [];
  return (JSON.parse(json) as { second: number }[]).map(({ second }) => second);
}

describe("the page of a load report", () => {
  it("draws no last second that was cut short, and counts it all the same", async () => {
    expect(await drawn(1_000, 2_000, 2_400)).toEqual([0, 1]);
    expect(await drawn(1_001, 2_002, 2_990)).toEqual([0, 1, 2]);
    expect(await drawn(300)).toEqual([0]);
    expect(reportOf(1_000, 2_000, 2_400).bytes.sent).toBe(3_000);
  });

  it("marks each threshold as passed or failed", async () => {
    const report = reportOf(1_000, 2_000);
    const thresholds = ["message_latency:p99<50ms", "session_rate>100", "session_latency:p99<1s"].map(
      (text) => parseThreshold(text, SESSION_METRICS),
    );
    const page = await htmlReport({ ...report, thresholds: judge(report, thresholds) });
    const rows = [
      ...page.matchAll(/<tr class="(\w+)"><td>(\w+)<\/td><td>(.*?)<\/td><td class="number">(.*?)<\/td>/g),
    ];
    expect(rows.map((row) => row.slice(1))).toEqual([
      ["pass", "pass", "message_latency:p99&#60;50ms", "10.0 ms"],
      ["fail", "fail", "session_rate&#62;100", "1"],
      ["fail", "fail", "session_latency:p99&#60;1s", "nothing was measured"],
    ]);
    expect(page).toContain("  FAIL  session_rate");
    expect(await htmlReport(report)).not.toContain("<h2>Thresholds</h2>");
  });
});
