import { describe, expect, it } from "vitest";
import { PROBE_KINDS } from "../../../../src/probes/worker/probe-results.ts";
import { CONTAINER_ID, runningStatus, settle, startWorker, withStatus } from "./worker-harness.ts";

describe("TestDoProbe", () => {
  it.each(
    PROBE_KINDS,
  )("%s: no status, no container, no container id: waits without a belief", async (kind) => {
    const { state, worker, tick, believed } = startWorker(kind, { periodSeconds: 1 });
    const { pod } = state;
    const { status: _, ...statusless } = pod;
    for (const waiting of [
      statusless,
      { ...pod, status: { phase: "Running" } },
      withStatus(pod, { name: "other", containerID: "test://other" }),
      withStatus(pod, { name: "main", state: { waiting: { reason: "ContainerCreating" } } }),
    ]) {
      state.pod = waiting;
      worker.start();
      await tick();
    }
    expect({ rounds: state.rounds, believed: believed(), isStopped: state.isStopped }).toEqual({
      rounds: 0,
      believed: undefined,
      isStopped: false,
    });
  });

  it.each(["Failed", "Succeeded"])("a pod that is %s ends the worker", async (phase) => {
    const { state, worker } = startWorker("Readiness", {});
    state.pod = { ...state.pod, status: { ...state.pod.status, phase } };
    worker.start();
    await settle();
    expect(state.isStopped).toBe(true);
  });

  it.each(PROBE_KINDS)("%s: a container that waits fails, the worker goes on", async (kind) => {
    const { state, worker, believed } = startWorker(kind, {});
    state.pod = withStatus(state.pod, { name: "main", containerID: CONTAINER_ID, state: { waiting: {} } });
    worker.start();
    await settle();
    expect({ believed: believed(), isStopped: state.isStopped }).toEqual({
      believed: "Failure",
      isStopped: false,
    });
  });

  it.each([
    ["Always", false],
    ["OnFailure", false],
    ["Never", true],
  ])("a terminated container with restartPolicy %s: the worker stops: %s", async (restartPolicy, stops) => {
    const { state, worker } = startWorker("Liveness", {});
    const terminated = { name: "main", containerID: CONTAINER_ID, state: { terminated: { exitCode: 1 } } };
    const pod = withStatus(state.pod, terminated);
    state.pod = { ...pod, spec: { ...pod.spec, restartPolicy } };
    worker.start();
    await settle();
    expect(state.isStopped).toBe(stops);
  });

  it.each([
    ["Liveness", true],
    ["Startup", true],
    ["Readiness", false],
  ] as const)("%s: a pod that is being deleted ends the worker: %s", async (kind, stops) => {
    const { state, results, worker } = startWorker(kind, {});
    const seen: string[] = [];
    results.subscribe(({ result }) => seen.push(result));
    const { metadata } = state.pod;
    state.pod = { ...state.pod, metadata: { ...metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
    worker.start();
    await settle();
    expect(state.isStopped).toBe(stops);
    expect(state.rounds).toBe(stops ? 0 : 1);
    if (stops) expect(seen.at(-1)).toBe("Success");
  });

  it.each([
    ["Liveness", "Success"],
    ["Readiness", "Failure"],
    ["Startup", "Unknown"],
  ] as const)("%s: an error leaves the belief as it is: %s", async (kind, initial) => {
    const { state, worker, believed } = startWorker(kind, { failureThreshold: 1 });
    state.next = undefined;
    worker.start();
    await settle();
    expect({ rounds: state.rounds, believed: believed(), run: worker.resultRun }).toEqual({
      rounds: 1,
      believed: initial,
      run: 0,
    });
  });

  it("what nobody expected does not end a worker", async () => {
    const { state, worker, tick } = startWorker("Readiness", { periodSeconds: 1 });
    const { pod } = state;
    Object.defineProperty(state, "pod", {
      configurable: true,
      get: () => {
        throw new Error("broken");
      },
    });
    worker.start();
    await settle();
    expect(state.crashes).toHaveLength(1);
    Object.defineProperty(state, "pod", { value: pod, writable: true });
    await tick();
    expect(state.rounds).toBe(1);
  });
});

describe("TestInitialDelay", () => {
  it.each([
    ["Liveness", "Success"],
    ["Readiness", "Failure"],
    ["Startup", "Unknown"],
  ] as const)("%s: %s until the delay is over, counted in whole seconds from the start", async (kind, initial) => {
    const { clock, state, worker, tick, believed } = startWorker(kind, {
      initialDelaySeconds: 10,
      periodSeconds: 1,
    });
    state.pod = withStatus(state.pod, runningStatus(clock.now() - 4_500));
    worker.start();
    for (let passed = 0; passed < 5; passed++) await tick("Success");
    expect({ rounds: state.rounds, believed: believed() }).toEqual({ rounds: 0, believed: initial });
    await tick("Success");
    expect({ rounds: state.rounds, believed: believed() }).toEqual({ rounds: 1, believed: "Success" });
  });
});

describe("TestFailureThreshold", () => {
  it("so many in a row; a success begins anew", async () => {
    const { state, worker, tick, believed } = startWorker("Readiness", {
      failureThreshold: 3,
      periodSeconds: 1,
    });
    worker.start();
    await settle();
    for (let turn = 0; turn < 2; turn++) {
      await tick("Success");
      await tick("Failure");
      await tick("Failure");
      expect(believed()).toBe("Success");
    }
    await tick("Failure");
    expect(believed()).toBe("Failure");
    await tick("Failure");
    expect({ believed: believed(), run: worker.resultRun, rounds: state.rounds }).toEqual({
      believed: "Failure",
      run: 4,
      rounds: 9,
    });
  });
});

describe("TestSuccessThreshold", () => {
  it("so many in a row, at the beginning too", async () => {
    const { worker, tick, believed } = startWorker("Readiness", {
      successThreshold: 3,
      failureThreshold: 1,
      periodSeconds: 1,
    });
    worker.start();
    await settle();
    await tick("Success");
    expect(believed()).toBe("Failure");
    await tick("Success");
    expect(believed()).toBe("Success");
    await tick("Failure");
    await tick("Success");
    await tick("Success");
    expect(believed()).toBe("Failure");
    await tick("Success");
    expect(believed()).toBe("Success");
  });
});

describe("TestStartupProbeSuccessThreshold", () => {
  it("on hold after the first success, the run reset", async () => {
    const { state, worker, tick, believed } = startWorker("Startup", {
      successThreshold: 1,
      periodSeconds: 1,
    });
    worker.start();
    await settle();
    expect({ believed: believed(), run: worker.resultRun, hold: worker.isOnHold }).toEqual({
      believed: "Success",
      run: 0,
      hold: true,
    });
    await tick("Success");
    expect(state.rounds).toBe(1);
  });
});

describe("TestStartupProbeFailureThreshold", () => {
  it("on hold after so many failures, the run reset", async () => {
    const { state, worker, tick, believed } = startWorker("Startup", {
      failureThreshold: 3,
      periodSeconds: 1,
    });
    state.next = "Failure";
    worker.start();
    await settle();
    const seen = [{ believed: believed(), run: worker.resultRun, hold: worker.isOnHold }];
    for (let turn = 0; turn < 2; turn++) {
      await tick();
      seen.push({ believed: believed(), run: worker.resultRun, hold: worker.isOnHold });
    }
    expect(seen).toEqual([
      { believed: "Unknown", run: 1, hold: false },
      { believed: "Unknown", run: 2, hold: false },
      { believed: "Failure", run: 0, hold: true },
    ]);
  });
});

describe("TestOnHoldOnLivenessOrStartupCheckFailure", () => {
  it.each(["Liveness", "Startup"] as const)("%s: until there is a new container", async (kind) => {
    const { clock, state, results, worker, tick, believed } = startWorker(kind, {
      failureThreshold: 1,
      periodSeconds: 1,
    });
    state.next = "Failure";
    worker.start();
    await settle();
    expect({ hold: worker.isOnHold, believed: believed() }).toEqual({ hold: true, believed: "Failure" });
    await tick("Success");
    await tick("Success");
    expect({ rounds: state.rounds, believed: believed() }).toEqual({ rounds: 1, believed: "Failure" });
    state.pod = withStatus(state.pod, runningStatus(clock.now(), { containerID: "test://two" }));
    await tick("Success");
    expect({ old: believed(), now: results.get("test://two") }).toEqual({ old: undefined, now: "Success" });
    expect(worker.isOnHold).toBe(kind === "Startup");
  });
});

describe("TestResultRunOnLivenessCheckFailure", () => {
  it("TestResultRunOnStartupCheckFailure: 1, 2, 0", async () => {
    for (const kind of ["Liveness", "Startup"] as const) {
      const { state, worker, tick } = startWorker(kind, { failureThreshold: 3, periodSeconds: 1 });
      state.next = "Failure";
      worker.start();
      await settle();
      const runs = [worker.resultRun];
      await tick();
      runs.push(worker.resultRun);
      await tick();
      runs.push(worker.resultRun);
      expect(runs).toEqual([1, 2, 0]);
    }
  });
});

describe("TestLivenessProbeDisabledByStarted", () => {
  it("liveness and readiness wait until the container has started", async () => {
    for (const kind of ["Liveness", "Readiness"] as const) {
      const { state, worker, tick } = startWorker(kind, { periodSeconds: 1 });
      state.isStarted = false;
      worker.start();
      await tick();
      expect(state.rounds).toBe(0);
      state.isStarted = true;
      await tick();
      expect(state.rounds).toBe(1);
    }
  });

  it("TestStartupProbeDisabledByStarted: a startup worker idles once it has", async () => {
    const { state, worker, tick } = startWorker("Startup", { periodSeconds: 1 });
    state.isStarted = true;
    worker.start();
    await tick();
    expect({ rounds: state.rounds, isStopped: state.isStopped }).toEqual({ rounds: 0, isStopped: false });
  });
});

describe("TestCleanUp", () => {
  it("a worker that is stopped forgets its container and runs no more", async () => {
    const { clock, state, worker, tick, believed } = startWorker("Readiness", { periodSeconds: 1 });
    worker.start();
    await settle();
    expect(believed()).toBe("Success");
    worker.stop();
    worker.stop();
    await tick();
    expect({ rounds: state.rounds, believed: believed(), isStopped: state.isStopped }).toEqual({
      rounds: 1,
      believed: undefined,
      isStopped: true,
    });
    expect(clock.listenerCount).toBe(0);
  });
});

describe("time", () => {
  it("the first round comes at once, the others a period apart, and the distance between workers stays", async () => {
    const { clock, state, worker } = startWorker("Readiness", { periodSeconds: 10 });
    const startMs = clock.now();
    worker.start(3_210);
    await settle();
    expect(state.rounds).toBe(0);
    for (let passedMs = 0; passedMs < 60_000; passedMs += 70) {
      clock.advance(70);
      await settle();
    }
    // 3.21 s, 13.21 s, ... 53.21 s
    expect(state.rounds).toBe(6);
    expect((worker.nextTickMs - startMs - 3_210) % 10_000).toBe(0);
  });

  it("a trigger probes now and counts the period from there", async () => {
    const { clock, state, worker } = startWorker("Readiness", { periodSeconds: 10 });
    worker.start();
    await settle();
    clock.advance(4_000);
    worker.trigger();
    worker.trigger();
    clock.advance(20);
    await settle();
    expect(state.rounds).toBe(2);
    clock.advance(9_970);
    await settle();
    expect(state.rounds).toBe(2);
    clock.advance(40);
    await settle();
    expect(state.rounds).toBe(3);
  });
});
