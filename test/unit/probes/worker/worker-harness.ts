import type { ContainerStatus, Pod } from "../../../../src/api/objects.ts";
import type { Probe } from "../../../../src/api/probe-objects.ts";
import type { ProbeLabels, ProbeSeries } from "../../../../src/observability/probe-metrics.ts";
import { errored, failure, type ProbeResult, success, warning } from "../../../../src/probes/probe-result.ts";
import { ProbeManager } from "../../../../src/probes/worker/probe-manager.ts";
import { type ProbeKind, ProbeResults, timingOf } from "../../../../src/probes/worker/probe-results.ts";
import { ProbeWorker } from "../../../../src/probes/worker/probe-worker.ts";
import type { ProbeEvent, RoundResult } from "../../../../src/probes/worker/prober.ts";
import { TimerWheel } from "../../../../src/probes/worker/timer-wheel.ts";
import { ManualClock } from "../../../support/manual-clock.ts";

export const POD_UID = "uid-1";
export const CONTAINER_ID = "test://one";

export function runningStatus(startedAtMs: number, more: Partial<ContainerStatus> = {}): ContainerStatus {
  const startedAt = new Date(startedAtMs).toISOString();
  return { name: "main", containerID: CONTAINER_ID, state: { running: { startedAt } }, ...more };
}

export function podWith(probes: Record<string, Probe>, status: ContainerStatus | undefined): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", namespace: "default", uid: POD_UID },
    spec: { containers: [{ name: "main", ...probes }], restartPolicy: "Always" },
    status: {
      phase: "Running",
      podIP: "127.0.0.1",
      ...(status === undefined ? {} : { containerStatuses: [status] }),
    },
  };
}

export function withStatus(pod: Pod, status: ContainerStatus): Pod {
  return { ...pod, status: { ...pod.status, containerStatuses: [status] } };
}

/** Lets promises that are due be kept. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** One worker on a clock that a test moves; rounds end as the test says. */
export function startWorker(kind: ProbeKind, probe: Probe, initial?: Pod) {
  const clock = new ManualClock();
  const state = {
    pod: initial ?? podWith({}, runningStatus(clock.now())),
    isStarted: kind !== "Startup",
    next: "Success" as RoundResult,
    rounds: 0,
    isStopped: false,
    crashes: [] as unknown[],
  };
  const results = new ProbeResults();
  const worker = new ProbeWorker({
    kind,
    podUid: POD_UID,
    containerName: "main",
    timing: timingOf(probe),
    wheel: new TimerWheel(clock),
    results,
    readPod: () => state.pod,
    isStarted: () => state.isStarted,
    runRound: async () => {
      state.rounds++;
      return state.next;
    },
    onStopped: () => {
      state.isStopped = true;
    },
    onCrash: (error) => state.crashes.push(error),
    wallClockMs: () => clock.now(),
  });
  /** One period passes, and a round ends like that. */
  const tick = async (next: RoundResult = state.next): Promise<void> => {
    state.next = next;
    clock.advance(timingOf(probe).periodSeconds * 1_000);
    await settle();
  };
  return { clock, state, results, worker, tick, believed: () => results.get(CONTAINER_ID) };
}

/** All of a node's workers, with attempts that a test answers. */
export function startManager(pods: readonly Pod[]) {
  const clock = new ManualClock();
  const byUid = new Map(pods.map((pod) => [pod.metadata.uid ?? "", pod]));
  const events: (ProbeEvent & { container: string })[] = [];
  const counted: (ProbeLabels & { result: Parameters<ProbeSeries["count"]>[0]; seconds: number })[] = [];
  const removed: ProbeLabels[] = [];
  const crashes: unknown[] = [];
  const answers = { next: (): ProbeResult | Promise<ProbeResult> => success("ok", {}), attempts: 0 };
  const manager = new ProbeManager({
    wheel: new TimerWheel(clock),
    readPod: (uid) => byUid.get(uid),
    attempt: async () => {
      answers.attempts++;
      return answers.next();
    },
    series: (labels) => ({
      count: (result, seconds) => counted.push({ ...labels, result, seconds }),
      remove: () => removed.push(labels),
    }),
    onEvent: (_, container, event) => events.push({ container, ...event }),
    onCrash: (error) => crashes.push(error),
    wallClockMs: () => clock.now(),
    random: () => 0,
  });
  return { clock, manager, byUid, events, counted, removed, crashes, answers };
}

export { errored, failure, success, warning };
