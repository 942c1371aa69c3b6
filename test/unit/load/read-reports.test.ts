import { describe, expect, it } from "vitest";
import { LoadCollector } from "../../../packages/lab/src/load/load-report.ts";
import { readReports } from "../../../packages/lab/src/load/read-reports.ts";
import { Recorder } from "../../../packages/lab/src/load/recorder.ts";
import { loadPlan } from "../../support/load-plan.ts";

function someReport() {
  const collector = new LoadCollector(loadPlan(), 1, Date.now());
  const recorder = new Recorder();
  recorder.latency("message", 3);
  collector.add(recorder.interval(0, { untilMs: 1_000, cpuShare: 0, lagMs: 0 }));
  return collector.report(false);
}

describe("reports in files", () => {
  it("are found in one, and between the lines of a log", () => {
    const report = someReport();
    const line = JSON.stringify(report);
    expect(readReports(`${line}\n`)).toEqual([report]);
    expect(readReports(`1/10 s  2 sessions\n${line}\nran 1 s\n[pod/load-1] ${line}`)).toEqual([
      report,
      report,
    ]);
  });

  const [second] = someReport().perSecond;
  const latencyOf = (counts: unknown) => ({ ...second?.latencies, message: { counts, maxUs: 1 } });
  it.each([
    ["an empty file", () => "", "there is no report"],
    ["other JSON", () => '{"kind":"Pod"}', "there is no report"],
    ["a report cut off", (text: string) => text.slice(0, -20), "is not whole"],
    ["another format", () => changed({ format: 2 }), "has format 2, this program reads 1"],
    ["no plan", () => changed({ plan: null }), "plan of its report is wrong"],
    [
      "a part that cannot be",
      () => changed({ parts: { of: 1, present: [1], startSpreadMs: 0 } }),
      "parts.present",
    ],
    ["no start", () => changed({ startedAt: "yesterday" }), "startedAt"],
    ["errors without a count", () => changed({ errors: [{ leg: "tcp", kind: "x", message: "" }] }), "errors"],
    ["a second out of order", () => changed({ perSecond: [{ ...second, second: 1e9 }] }), "perSecond"],
    ["a negative count", () => changed({ perSecond: [{ ...second, failed: -1 }] }), "perSecond"],
    [
      "a bucket that is none",
      () => changed({ perSecond: [{ ...second, latencies: latencyOf([[1e9, 1]]) }] }),
      "perSecond",
    ],
    [
      "counts that are none",
      () => changed({ perSecond: [{ ...second, latencies: latencyOf(["x"]) }] }),
      "perSecond",
    ],
  ])("are refused: %s", (_, textOf, message) => {
    expect(() => readReports(textOf(JSON.stringify(someReport())))).toThrow(message);
  });

  function changed(fields: object): string {
    return JSON.stringify({ ...someReport(), ...fields });
  }
});
