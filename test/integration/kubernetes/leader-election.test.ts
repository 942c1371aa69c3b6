import { describe, expect, it, onTestFinished } from "vitest";
import { LeaderElection } from "../../../src/kubernetes/leader-election.ts";
import { eventually } from "../../support/eventually.ts";
import { startLive } from "./live.ts";

async function candidates(count: number) {
  const { server, client } = await startLive();
  const clock = { nowMs: 0 };
  const told: string[] = [];
  const all = Array.from({ length: count }, (_, index) => {
    const election = new LeaderElection({
      client,
      namespace: "default",
      name: "lease",
      identity: `replica-${index}`,
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 10,
      onLeading: () => told.push(`${index} leads`),
      onLost: () => told.push(`${index} lost`),
      onFailure: (problem) => told.push(problem),
      nowMs: () => clock.nowMs,
    });
    onTestFinished(() => election.stop());
    return election;
  });
  const leading = () => all.flatMap(({ isLeading }, index) => (isLeading ? [index] : []));
  const isRenewed = async () => {
    const renewals = () => server.requests.filter(({ method }) => method === "PUT").length;
    const before = renewals();
    await eventually("renewals", () => renewals() > before + 1);
  };
  return { server, clock, told, all, leading, isRenewed };
}

describe("LeaderElection", () => {
  it("of many that start at once one leads", async () => {
    const { all, leading, isRenewed } = await candidates(5);
    for (const election of all) election.start();
    await eventually("a leader", () => leading().length > 0);
    await isRenewed();
    expect(leading()).toHaveLength(1);
  });

  it("who cannot renew stops leading by itself, before another may begin", async () => {
    const { server, clock, told, all, leading, isRenewed } = await candidates(1);
    all[0]?.start();
    await eventually("a leader", () => leading().length > 0);
    server.faults.add("503", { times: 1_000_000 });
    clock.nowMs += 9_999;
    // A renewal that was under way may have been in time.
    expect(leading()).toEqual([0]);
    await eventually("a failed try", () => server.faults.inflicted > 1);
    clock.nowMs += 10_000;
    expect(leading()).toEqual([]);
    await eventually("it is told", () => told.includes("0 lost"));
    // Once, not at each try.
    expect(told.filter((line) => line.includes("unable to handle"))).toHaveLength(1);
    server.faults.clear();
    await eventually("it leads again", () => leading().length > 0);
    await isRenewed();
    expect(told.at(-1)).toBe("0 leads");
  });

  it("waits for a Lease by its own clock, from when it last saw it change", async () => {
    const { server, clock, all, leading } = await candidates(1);
    const lease = (renewTime: string) =>
      server.apply({
        apiVersion: "coordination.k8s.io/v1",
        kind: "Lease",
        metadata: { name: "lease", namespace: "default" },
        spec: { holderIdentity: "other", leaseDurationSeconds: 15, renewTime },
      });
    const seen = async () => {
      const reads = () => server.requests.filter(({ method }) => method === "GET").length;
      const before = reads();
      await eventually("two reads", () => reads() > before + 2);
    };
    // By the other's clock it ran out long ago.
    lease("2001-01-01T00:00:00.000000Z");
    all[0]?.start();
    await seen();
    expect(leading()).toEqual([]);
    clock.nowMs += 14_999;
    lease("2001-01-01T00:00:02.000000Z");
    await seen();
    clock.nowMs += 14_999;
    await seen();
    expect(leading()).toEqual([]);
    clock.nowMs += 1;
    await eventually("it leads", () => leading().length > 0);
  });

  it.each([
    ["no spec", { spec: null }],
    ["nulls alone", { spec: { holderIdentity: null, leaseDurationSeconds: null, leaseTransitions: null } }],
  ])("takes a Lease of %s at once", async (_, spec) => {
    const { server, all, leading } = await candidates(1);
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "lease" } };
    server.apply({ ...lease, ...spec });
    all[0]?.start();
    // The clock stands: a Lease that somebody holds would never run out.
    await eventually("it leads", () => leading().length > 0);
  });

  it("gives the Lease up when it stops, and another takes it at once", async () => {
    const { all, leading } = await candidates(2);
    all[0]?.start();
    await eventually("the first leads", () => leading().includes(0));
    all[1]?.start();
    await all[0]?.stop();
    await eventually("the second leads", () => leading().includes(1));
    expect(leading()).toEqual([1]);
  });
});
