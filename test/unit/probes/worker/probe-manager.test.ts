import { describe, expect, it } from "vitest";
import type { Container, Pod } from "../../../../src/api/objects.ts";
import { Metrics } from "../../../../src/observability/metrics.ts";
import { ProbeMetrics } from "../../../../src/observability/probe-metrics.ts";
import { withReadyConditions } from "../../../../src/probes/worker/derive-status.ts";
import { runRound } from "../../../../src/probes/worker/prober.ts";
import {
  CONTAINER_ID,
  errored,
  failure,
  POD_UID,
  podWith,
  runningStatus,
  settle,
  startManager,
  success,
  warning,
  withStatus,
} from "./worker-harness.ts";

// The bound under test.
const MAX_PROBE_ATTEMPTS = 3;

const HANDLER = { tcpSocket: { port: 1 }, periodSeconds: 1, failureThreshold: 1 };
const STARTED_MS = 1_000_000;

function podOf(probes: Record<string, object>): Pod {
  return podWith(probes as never, runningStatus(STARTED_MS));
}

describe("TestProbe", () => {
  const cases = [
    ["Success", success("fine", {}), "Success", undefined],
    [
      "Warning",
      warning("Probe terminated redirects, Response body: x", {}),
      "Success",
      "ProbeWarning: Readiness probe warning: Probe terminated redirects, Response body: x",
    ],
    [
      "Failure",
      failure("HTTP probe failed with statuscode: 500", {}),
      "Failure",
      "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 500",
    ],
    ["Unknown without an error", { result: "Unknown", message: "", wire: {} }, "Failure", undefined],
    [
      "an error",
      errored("invalid port number: 0"),
      undefined,
      "Unhealthy: Readiness probe errored and resulted in unknown state: invalid port number: 0",
    ],
    [
      "a body that broke off",
      errored("unexpected EOF", {}, "Failure"),
      undefined,
      "Unhealthy: Readiness probe errored and resulted in failure state: unexpected EOF",
    ],
  ] as const;

  it.each(cases)("%s", async (_, answer, result, text) => {
    const texts: string[] = [];
    const round = await runRound(
      "Readiness",
      async () => answer,
      ({ type, reason, message }) => {
        expect(type).toBe("Warning");
        texts.push(`${reason}: ${message}`);
      },
    );
    expect(round).toBe(result);
    expect(texts).toEqual(text === undefined ? [] : [text]);
  });

  it("the summary, which is logged, quotes neither a body nor an output", async () => {
    const summaries: string[] = [];
    for (const answer of [failure("s3cret", {}), warning("s3cret", {}), errored("s3cret")]) {
      await runRound(
        "Liveness",
        async () => answer,
        ({ summary, cause }) => {
          summaries.push(summary);
          expect(cause).not.toContain("s3cret");
        },
      );
    }
    expect(summaries).toEqual([
      "Liveness probe failed",
      "Liveness probe warning",
      "Liveness probe errored and resulted in unknown state",
    ]);
  });

  it("only errors are tried again, up to three times, and only the last one is told", async () => {
    let attempts = 0;
    const events: unknown[] = [];
    const attempt = (answers: readonly ReturnType<typeof success>[]) => async () =>
      answers[attempts++] ?? success("late", {});
    await runRound(
      "Liveness",
      attempt([errored("1"), errored("2"), errored("3"), success("", {})]),
      (event) => events.push(event),
    );
    expect({ attempts, events: events.length }).toEqual({ attempts: MAX_PROBE_ATTEMPTS, events: 1 });
    attempts = 0;
    expect(await runRound("Liveness", attempt([errored("1"), success("", {})]), () => {})).toBe("Success");
    expect(attempts).toBe(2);
    attempts = 0;
    await runRound("Liveness", attempt([failure("no", {})]), () => {});
    expect(attempts).toBe(1);
  });
});

describe("TestAddRemovePods", () => {
  it("a worker for each probe that is declared, and none for a pod without", () => {
    const { manager, removed } = startManager([]);
    manager.addPod(podOf({}));
    expect(manager.workerCount).toBe(0);
    const pod = podOf({ livenessProbe: HANDLER, readinessProbe: HANDLER, startupProbe: HANDLER });
    manager.addPod(pod);
    manager.addPod(pod);
    expect(manager.workerCount).toBe(3);
    manager.removePod("another");
    expect(manager.workerCount).toBe(3);
    manager.removePod(POD_UID);
    manager.removePod(POD_UID);
    expect(manager.workerCount).toBe(0);
    expect(removed).toHaveLength(3);
  });

  it("TestAddRemovePodsWithRestartableInitContainer: sidecars have workers, other init containers none", () => {
    const { manager } = startManager([]);
    const pod = podOf({});
    const initContainers: Container[] = [
      { name: "once", readinessProbe: HANDLER },
      { name: "sidecar", restartPolicy: "Always", readinessProbe: HANDLER },
    ];
    manager.addPod({ ...pod, spec: { ...pod.spec, initContainers } });
    expect(manager.workerCount).toBe(1);
    expect(manager.worker(POD_UID, "sidecar", "Readiness")).toBeDefined();
  });

  it("TestAddPodDynamicContainers: containers that come later get workers, the others keep theirs", () => {
    const { manager } = startManager([]);
    const pod = podOf({ readinessProbe: HANDLER });
    manager.addPod(pod);
    const before = manager.worker(POD_UID, "main", "Readiness");
    const containers = [...pod.spec.containers, { name: "late", livenessProbe: HANDLER }];
    manager.addPod({ ...pod, spec: { ...pod.spec, containers } });
    expect(manager.workerCount).toBe(2);
    expect(manager.worker(POD_UID, "main", "Readiness")).toBe(before);
  });

  it("TestCleanupPods: workers of pods that are not wanted end", () => {
    const { manager } = startManager([]);
    const pod = podOf({ readinessProbe: HANDLER });
    manager.addPod(pod);
    manager.addPod({ ...pod, metadata: { ...pod.metadata, uid: "uid-2" } });
    manager.cleanUp(new Set(["uid-2"]));
    expect(manager.workerCount).toBe(1);
  });

  it("TestCleanupRepeated: clean-up of what is gone already", () => {
    const { manager } = startManager([]);
    const pod = podOf({ readinessProbe: HANDLER });
    for (let turn = 0; turn < 10; turn++) {
      manager.addPod({ ...pod, metadata: { ...pod.metadata, uid: `uid-${turn}` } });
    }
    for (let turn = 0; turn < 10; turn++) manager.cleanUp(new Set());
    expect(manager.workerCount).toBe(0);
  });
});

describe("TestUpdatePodStatus", () => {
  const verdictOf = (manager: ReturnType<typeof startManager>["manager"], pod: Pod) => {
    const status = manager.statusWithVerdicts(pod).containerStatuses?.[0];
    return { started: status?.started, ready: status?.ready };
  };

  it("a running container without probes has started and is ready; one that does not run is neither", () => {
    const { manager } = startManager([]);
    const pod = podOf({});
    expect(verdictOf(manager, pod)).toEqual({ started: true, ready: true });
    for (const state of [{ waiting: {} }, { terminated: { exitCode: 0 } }]) {
      const other = withStatus(pod, { name: "main", containerID: CONTAINER_ID, state });
      expect(verdictOf(manager, other)).toEqual({ started: false, ready: false });
    }
  });

  it("with probes, as their results say", async () => {
    const pod = podOf({ readinessProbe: HANDLER, startupProbe: HANDLER });
    const { manager } = startManager([pod]);
    manager.addPod(pod);
    expect(verdictOf(manager, pod)).toEqual({ started: false, ready: false });
    manager.results.Startup.set(CONTAINER_ID, POD_UID, "Unknown");
    expect(verdictOf(manager, pod)).toEqual({ started: false, ready: false });
    manager.results.Startup.set(CONTAINER_ID, POD_UID, "Success");
    expect(verdictOf(manager, pod)).toEqual({ started: true, ready: false });
    manager.results.Readiness.set(CONTAINER_ID, POD_UID, "Success");
    expect(verdictOf(manager, pod)).toEqual({ started: true, ready: true });
    manager.results.Readiness.set(CONTAINER_ID, POD_UID, "Failure");
    expect(verdictOf(manager, pod)).toEqual({ started: true, ready: false });
  });

  it("TestUpdatePodStatusWithInitContainers: an init container is ready when it has ended well", () => {
    const { manager } = startManager([]);
    const pod = podOf({});
    const initContainerStatuses = [
      { name: "done", state: { terminated: { exitCode: 0 } } },
      { name: "failed", state: { terminated: { exitCode: 1 } } },
      { name: "runs", state: { running: {} } },
    ];
    const status = manager.statusWithVerdicts({ ...pod, status: { ...pod.status, initContainerStatuses } });
    expect(status.initContainerStatuses?.map(({ started, ready }) => [started, ready])).toEqual([
      [false, true],
      [false, false],
      [true, false],
    ]);
  });

  it("TestUpdateReadiness: readiness follows the results, and listeners hear of changes only", async () => {
    const pod = podOf({ readinessProbe: HANDLER });
    const { clock, manager, answers } = startManager([pod]);
    const heard: string[] = [];
    manager.results.Readiness.subscribe(({ result }) => heard.push(result));
    manager.addPod(pod);
    for (const answer of [success("", {}), success("", {}), failure("no", {}), success("", {})]) {
      answers.next = () => answer;
      clock.advance(1_000);
      await settle();
    }
    expect(heard).toEqual(["Failure", "Success", "Failure", "Success"]);
    expect(verdictOf(manager, pod)).toEqual({ started: true, ready: true });
  });

  it("asking for the status of a started container that is not ready probes it now", async () => {
    const pod = podOf({ readinessProbe: { ...HANDLER, periodSeconds: 60 } });
    const { clock, manager, answers } = startManager([pod]);
    answers.next = () => failure("not yet", {});
    manager.addPod(pod);
    await settle();
    expect(answers.attempts).toBe(1);
    answers.next = () => success("", {});
    manager.statusWithVerdicts(pod);
    clock.advance(10);
    await settle();
    expect(manager.statusWithVerdicts(pod).containerStatuses?.[0]?.ready).toBe(true);
  });
});

describe("pod conditions", () => {
  const now = new Date("2026-01-01T00:00:00.500Z");
  const conditionsOf = (pod: Pod, ready: boolean) => {
    const containerStatuses = [{ name: "main", ready }];
    return withReadyConditions(pod, { ...pod.status, containerStatuses }, now).conditions;
  };

  it("Ready and ContainersReady follow the containers, in the kubelet's words", () => {
    const time = { lastTransitionTime: "2026-01-01T00:00:00Z" };
    expect(conditionsOf(podOf({}), true)).toEqual([
      { type: "Ready", status: "True", ...time },
      { type: "ContainersReady", status: "True", ...time },
    ]);
    const reason = { reason: "ContainersNotReady", message: "containers with unready status: [main]" };
    expect(conditionsOf(podOf({}), false)).toEqual([
      { type: "Ready", status: "False", ...reason, ...time },
      { type: "ContainersReady", status: "False", ...reason, ...time },
    ]);
  });

  it("a condition that stays as it was keeps its time; readiness gates count", () => {
    const pod = podOf({});
    const old = { type: "Ready", status: "True", lastTransitionTime: "2025-01-01T00:00:00Z" };
    const before = { ...pod, status: { ...pod.status, conditions: [old] } };
    expect(conditionsOf(before, true)?.[0]).toEqual(old);
    const gated = { ...pod, spec: { ...pod.spec, readinessGates: [{ conditionType: "example.com/gate" }] } };
    expect(conditionsOf(gated, true)?.map(({ status }) => status)).toEqual(["False", "True"]);
  });
});

describe("metrics of rounds", () => {
  it("successful, failed, nothing for errors; the series go with the worker", async () => {
    const pod = podOf({ readinessProbe: HANDLER });
    const { clock, manager, counted, removed, answers, events } = startManager([pod]);
    manager.addPod(pod);
    await settle();
    for (const answer of [failure("no", {}), errored("what")]) {
      answers.next = () => answer;
      clock.advance(1_000);
      await settle();
    }
    const labels = {
      probe_type: "Readiness",
      container: "main",
      pod: "web",
      namespace: "default",
      pod_uid: POD_UID,
    };
    expect(counted).toMatchObject([
      { ...labels, result: "successful" },
      { ...labels, result: "failed" },
    ]);
    expect(events.map(({ reason }) => reason)).toEqual(["Unhealthy", "Unhealthy"]);
    manager.removePod(POD_UID);
    expect(removed).toEqual([labels]);
  });

  it("prober_probe_total and prober_probe_duration_seconds as the kubelet exposes them", async () => {
    const metrics = new Metrics();
    expect(metrics.probes).toBeInstanceOf(ProbeMetrics);
    const labels = { probe_type: "Liveness", container: "c", pod: "p", namespace: "n", pod_uid: "u" };
    const series = metrics.probes.series(labels);
    series.count("successful", 0.003);
    series.count("failed", 3);
    const text = await metrics.expose();
    const line = (name: string) => text.split("\n").filter((each) => each.startsWith(name));
    expect(line("prober_probe_total").sort()).toEqual([
      'prober_probe_total{probe_type="Liveness",container="c",pod="p",namespace="n",pod_uid="u",result="failed"} 1',
      'prober_probe_total{probe_type="Liveness",container="c",pod="p",namespace="n",pod_uid="u",result="successful"} 1',
    ]);
    expect(line("prober_probe_duration_seconds_count")).toEqual([
      'prober_probe_duration_seconds_count{probe_type="Liveness",container="c",pod="p",namespace="n"} 1',
    ]);
    series.remove();
    expect(await metrics.expose()).not.toContain('pod="p"');
  });
});
