import { describe, expect, it } from "vitest";
import { type Prober, SharedProbing } from "../../../src/app/runtime/shared-probing.ts";
import type { ProbeUpdate } from "../../../src/probes/probe-update.ts";

class FakeWorker implements Prober {
  readySinceMs: number | undefined;
  readonly learned: (readonly ProbeUpdate[])[] = [];
  readonly named: boolean[] = [];

  constructor(readySinceMs: number | undefined) {
    this.readySinceMs = readySinceMs;
  }

  get isTaking(): boolean {
    return this.readySinceMs !== undefined;
  }

  learn(findings: readonly ProbeUpdate[]): void {
    this.learned.push(findings);
  }

  /** What `probe` rejects with. */
  problem: Error | undefined;

  async probe(isSuccessor: boolean): Promise<void> {
    this.named.push(isSuccessor);
    if (this.problem !== undefined) throw this.problem;
  }
}

const dead: ProbeUpdate = { kind: "node", name: "node", isHealthy: false, reason: "refused" };
const alive: ProbeUpdate = { kind: "node", name: "node", isHealthy: true, reason: "" };
const pod = (status: { phase: "Running" } | undefined): ProbeUpdate => ({
  kind: "pod",
  namespace: "default",
  name: "web",
  status,
});

function start(...readySinceMs: (number | undefined)[]) {
  const workers = readySinceMs.map((since) => new FakeWorker(since));
  const probers: (FakeWorker | undefined)[] = [];
  const failed: (readonly [FakeWorker, Error])[] = [];
  const probing = new SharedProbing<FakeWorker>(() => workers, {
    onProber: (worker) => probers.push(worker),
    onFailed: (...failure) => failed.push(failure),
  });
  const kill = (worker: FakeWorker, isExpected = false): void => {
    workers.splice(workers.indexOf(worker), 1);
    worker.readySinceMs = undefined;
    probing.gone(worker, isExpected);
  };
  return { workers, probing, kill, probers, failed };
}

describe("SharedProbing", () => {
  it("names the worker that serves the longest, and when it is gone the next one as its successor", () => {
    const { workers, probing, kill } = start(30, 10, 20, undefined);
    const [third, first, second, starting] = workers as [FakeWorker, FakeWorker, FakeWorker, FakeWorker];
    probing.ready(third);
    expect(workers.map(({ named }) => named)).toEqual([[], [false], [], []]);
    kill(third);
    expect([first.named, second.named]).toEqual([[false], []]);
    kill(first);
    expect([second.named, starting.named]).toEqual([[true], []]);
    kill(second);
    expect(starting.named).toEqual([]);
    starting.readySinceMs = 40;
    probing.ready(starting);
    expect(starting.named).toEqual([true]);
  });

  it("tells who probes, and who could not begin", async () => {
    const { workers, probing, kill, probers, failed } = start(10, 20);
    const [first, second] = workers as [FakeWorker, FakeWorker];
    second.problem = new Error("no such file");
    probing.ready(first);
    expect(probers).toEqual([first]);
    kill(first);
    expect(probers).toEqual([first, undefined, second]);
    await Promise.resolve();
    await Promise.resolve();
    expect(failed).toEqual([[second, second.problem]]);
  });

  it("names nobody while the gateway ends", () => {
    const { workers, probing, kill } = start(10, 20);
    const [first, second] = workers as [FakeWorker, FakeWorker];
    probing.ready(first);
    kill(first, true);
    expect(second.named).toEqual([]);
  });

  it("tells findings of the prober alone, to others that serve", () => {
    const { workers, probing } = start(10, 20, undefined);
    const [first, second, starting] = workers as [FakeWorker, FakeWorker, FakeWorker];
    probing.ready(first);
    probing.found(first, [dead]);
    probing.found(second, [alive]);
    expect([first.learned, second.learned, starting.learned]).toEqual([[], [[dead]], []]);
  });

  it("tells a worker that starts later what lasts, the latest of each", () => {
    const { workers, probing } = start(10, undefined, undefined);
    const [first, second, third] = workers as [FakeWorker, FakeWorker, FakeWorker];
    probing.ready(first);
    probing.found(first, [dead, pod(undefined)]);
    probing.found(first, [pod({ phase: "Running" })]);
    second.readySinceMs = 20;
    probing.ready(second);
    expect(second.learned).toEqual([[dead, pod({ phase: "Running" })]]);
    probing.found(first, [alive, pod(undefined)]);
    third.readySinceMs = 30;
    probing.ready(third);
    expect(third.learned).toEqual([]);
  });
});
