import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LatencyCounts } from "../../../packages/lab/src/load/latency-counts.ts";
import { LoadCollector, type LoadReport, partsOf } from "../../../packages/lab/src/load/load-report.ts";
import { mergeReports, missingParts } from "../../../packages/lab/src/load/read-reports.ts";
import { LATENCIES, Recorder } from "../../../packages/lab/src/load/recorder.ts";
import { loadPlan } from "../../support/load-plan.ts";

const START_MS = Date.parse("2026-01-01T00:00:00Z");
const OWN = { cpuShare: 0.1, lagMs: 1 };

interface Sample {
  readonly second: number;
  readonly name: (typeof LATENCIES)[number];
  readonly ms: number;
}

/** What a part reports that saw these samples. */
function reportOf(samples: readonly Sample[], index: number, of: number, startAtMs = START_MS): LoadReport {
  const collector = new LoadCollector(loadPlan(), 1, startAtMs, partsOf({ index, of }));
  const recorder = new Recorder();
  for (let second = 0; second < 4; second++) {
    for (const { name, ms } of samples.filter((sample) => sample.second === second)) {
      recorder.latency(name, ms);
      recorder.counts.finished += 1;
    }
    collector.add(recorder.interval(second, { untilMs: (second + 1) * 1_000, ...OWN }));
  }
  // As it comes from a file.
  return JSON.parse(JSON.stringify(collector.report(false)));
}

const named = ([first, ...others]: readonly [LoadReport, ...LoadReport[]]) => {
  const nameOf = (report: LoadReport, index: number) => ({ name: `${index}.json`, report });
  return [nameOf(first, 0), ...others.map((report, index) => nameOf(report, index + 1))] as const;
};

describe("reports of parts that ran side by side", () => {
  const samples = fc.array(
    fc.record({
      second: fc.nat(3),
      name: fc.constantFrom(...LATENCIES),
      ms: fc.double({ min: 0, max: 4_000_000, noNaN: true }),
      part: fc.nat(2),
    }),
  );

  it("add up to what one process would have counted", () => {
    fc.assert(
      fc.property(samples, (all) => {
        const partOf = (part: number) =>
          reportOf(
            all.filter((sample) => sample.part === part),
            part,
            3,
          );
        const { latencies, sessions, perSecond } = mergeReports(named([partOf(0), partOf(1), partOf(2)]));
        const whole = reportOf(all, 0, 1);
        expect({ latencies, sessions, perSecond }).toEqual({
          latencies: whole.latencies,
          sessions: whole.sessions,
          perSecond: whole.perSecond,
        });
        for (const name of LATENCIES) {
          const counts = new LatencyCounts();
          for (const sample of all) if (sample.name === name) counts.record(sample.ms);
          expect(latencies[name].p999Us).toBe(counts.percentileUs(0.999));
          expect(latencies[name].maxUs).toBe(counts.maxUs);
        }
      }),
    );
  });

  it("add up in any order and grouping", () => {
    const [a, b, c] = [0, 1, 2].map((part) =>
      reportOf([{ second: part, name: "message", ms: part + 0.5 }], part, 3, START_MS + part * 1_000),
    ) as [LoadReport, LoadReport, LoadReport];
    const atOnce = mergeReports(named([a, b, c]));
    expect(mergeReports(named([mergeReports(named([c, a])), b]))).toEqual(atOnce);
    expect(atOnce.parts).toEqual({ of: 3, present: [0, 1, 2], startSpreadMs: 2_000 });
    // Each in the second of the earliest start in which it was.
    expect(atOnce.perSecond.map(({ latencies }) => latencies.message.counts.length)).toEqual([
      1, 0, 1, 0, 1, 0,
    ]);
    expect(atOnce.seconds).toBe(6);
    expect(atOnce.generator.processes).toBe(3);
  });

  it("name the parts without a report", () => {
    expect(missingParts(mergeReports(named([reportOf([], 3, 5), reportOf([], 1, 5)])))).toEqual([0, 2, 4]);
  });

  it("keep errors, deaths and interruptions", () => {
    const collector = new LoadCollector(loadPlan(), 1, START_MS, partsOf({ index: 1, of: 2 }));
    collector.addDeath(0, "SIGKILL");
    collector.addError({ leg: "tcp", kind: "ECONNREFUSED", message: "no", count: 2 });
    const { errors, sessions, wasInterrupted, generator } = mergeReports(
      named([reportOf([], 0, 2), collector.report(true)]),
    );
    expect({ sessions, wasInterrupted }).toMatchObject({ sessions: { failed: 1 }, wasInterrupted: true });
    expect(errors.map(({ leg, kind, count }) => [leg, kind, count])).toEqual([
      ["tcp", "ECONNREFUSED", 2],
      ["generator", "process-died", 1],
    ]);
    expect(generator.deaths).toBe(1);
  });

  const part = reportOf([], 1, 2);
  it.each([
    ["of another release", { version: "9.9.9" }, /^1\.json: it is of sluice 9\.9\.9, but .* in 0\.json$/],
    ["with another plan", { plan: { ...part.plan, sessions: 7 } }, "1.json: sessions is 7, but 2 in 0.json"],
    ["with another seed", { plan: { ...part.plan, seed: 7 } }, "1.json: seed is 7, but 1 in 0.json"],
    ["of another number of parts", { parts: { ...part.parts, of: 3 } }, "1.json: the number of parts is 3"],
    ["of the same part", { parts: { ...part.parts, present: [0] } }, "1.json: part 0 of 2 is in 0.json, too"],
    [
      "with more processes",
      { generator: { ...part.generator, processes: 2 } },
      "1.json: processes of a part are 2, but 1 in 0.json",
    ],
    ["of another hour", { startedAt: "2026-01-01T01:00:00Z" }, "one started 3600 s after another"],
  ])("refuse one %s", (_, changed, message) => {
    expect(() => mergeReports(named([reportOf([], 0, 2), { ...part, ...changed }]))).toThrow(message);
  });
});
