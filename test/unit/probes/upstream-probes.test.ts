import { describe, expect, it } from "vitest";
import { failure, type ProbeResult, success } from "../../../src/probes/probe-result.ts";
import { UpstreamProbes, type UpstreamTarget } from "../../../src/probes/upstream/upstream-probes.ts";
import { TimerWheel } from "../../../src/probes/worker/timer-wheel.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const TIMING = {
  initialDelaySeconds: 0,
  periodSeconds: 10,
  timeoutSeconds: 1,
  successThreshold: 2,
  failureThreshold: 3,
};

function watchOver(...names: string[]) {
  const clock = new ManualClock();
  const reports: string[] = [];
  let answer: ProbeResult = success("", {});
  let attempts = 0;
  const target = (name: string): UpstreamTarget => ({
    name,
    attempt: async () => {
      attempts++;
      return answer;
    },
  });
  const probes = new UpstreamProbes({
    timing: TIMING,
    wheel: new TimerWheel(clock),
    random: () => 0,
    report: (name, isHealthy, reason) => reports.push(`${name} ${isHealthy ? "alive" : `dead: ${reason}`}`),
  });
  probes.setTargets(names.map(target));
  const round = async (next: ProbeResult): Promise<void> => {
    answer = next;
    clock.advance(10_000);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { clock, probes, reports, round, target, attempts: () => attempts };
}

describe("probes of upstreams", () => {
  const bad = failure("dial tcp 10.0.0.1:10250: i/o timeout", {});
  const good = success("", {});

  it("everybody is alive until a threshold of failures, and until one of successes again", async () => {
    const { probes, reports, round } = watchOver("a");
    for (const next of [good, bad, bad]) await round(next);
    expect({ reports, isHealthy: probes.isHealthy("a") }).toEqual({ reports: [], isHealthy: true });
    await round(bad);
    const dead = "a dead: Liveness probe failed: dial tcp 10.0.0.1:10250: i/o timeout";
    expect({ reports, isHealthy: probes.isHealthy("a") }).toEqual({ reports: [dead], isHealthy: false });
    await round(good);
    expect(probes.isHealthy("a")).toBe(false);
    await round(good);
    await round(good);
    expect({ reports, isHealthy: probes.isHealthy("a") }).toEqual({
      reports: [dead, "a alive"],
      isHealthy: true,
    });
  });

  it("a dead one is told again at each round, a living one once", async () => {
    const { reports, round } = watchOver("a");
    for (const next of [bad, bad, bad, bad, bad, good, good, good, good]) await round(next);
    expect(reports.map((report) => report.slice(0, 6))).toEqual(["a dead", "a dead", "a dead", "a aliv"]);
  });

  it("targets come and go; who stays keeps its count", async () => {
    const { clock, probes, reports, round, target, attempts } = watchOver("a");
    await round(bad);
    await round(bad);
    probes.setTargets([target("a"), target("b")]);
    await round(bad);
    expect(reports).toEqual([expect.stringMatching(/^a dead/)]);
    probes.setTargets([target("b")]);
    expect(probes.isHealthy("a")).toBe(true);
    probes.stop();
    const before = attempts();
    await round(bad);
    expect({ more: attempts() - before, listeners: clock.listenerCount }).toEqual({ more: 0, listeners: 0 });
  });
});
