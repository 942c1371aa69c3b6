import type { Container, ContainerStatus, Pod, PodStatus } from "../../api/objects.ts";
import type { ProbeHandler } from "../../api/probe-objects.ts";
import type { ProbeLabels, ProbeSeries } from "../../observability/probe-metrics.ts";
import type { ProbeResult } from "../probe-result.ts";
import { withVerdicts } from "./derive-status.ts";
import {
  PROBE_KINDS,
  type ProbeKind,
  ProbeResults,
  type ProbeState,
  probeOf,
  timingOf,
} from "./probe-results.ts";
import { ProbeWorker } from "./probe-worker.ts";
import { type ProbeEvent, type RoundResult, runRound } from "./prober.ts";
import type { TimerWheel } from "./timer-wheel.ts";

/** Runs one handler once against a pod's container; never rejects. */
type AttemptProbe = (
  handler: ProbeHandler,
  target: { readonly pod: Pod; readonly container: Container; readonly containerId: string },
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
) => Promise<ProbeResult>;

interface ProbeManagerOptions {
  readonly wheel: TimerWheel;
  /** The pod with its current status, found by uid. */
  readonly readPod: (uid: string) => Pod | undefined;
  readonly attempt: AttemptProbe;
  readonly series: (labels: ProbeLabels) => ProbeSeries;
  readonly onEvent: (pod: Pod, containerName: string, event: ProbeEvent) => void;
  readonly onCrash: (error: unknown) => void;
  readonly wallClockMs?: () => number;
  /** Returns a number in [0, 1). */
  readonly random?: () => number;
}

/** The workers of all pods on a node, and the verdicts about their containers. */
export class ProbeManager {
  readonly results: Readonly<Record<ProbeKind, ProbeResults>> = {
    Liveness: new ProbeResults(),
    Readiness: new ProbeResults(),
    Startup: new ProbeResults(),
  };
  readonly #options: ProbeManagerOptions;
  readonly #startedMs: number;
  /** Keyed by pod uid, then by container and kind. */
  readonly #workers = new Map<string, Map<string, ProbeWorker>>();
  readonly #failures = new WeakMap<ProbeWorker, NonNullable<ProbeState["lastFailure"]>>();

  constructor(options: ProbeManagerOptions) {
    this.#options = options;
    this.#startedMs = options.wheel.now();
  }

  /**
   * Starts a worker for each of the pod's probes that lacks one. Call it again when containers were
   * added.
   */
  addPod(pod: Pod): void {
    const uid = pod.metadata.uid ?? "";
    for (const container of probedContainers(pod)) {
      for (const kind of PROBE_KINDS) {
        if (probeOf(container, kind) !== undefined) this.#addWorker(uid, pod, container, kind);
      }
    }
  }

  /**
   * Uses an earlier prober's results, from the containers' statuses, until there are new ones. Call
   * this after `addPod`.
   */
  believeStatus({ metadata, status = {} }: Pod): void {
    const { uid = "" } = metadata;
    for (const container of [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])]) {
      const { name, containerID, started, ready } = container;
      if (!containerID || container.state?.running === undefined) continue;
      const believe = (kind: "Startup" | "Readiness"): void => {
        if (this.worker(uid, name, kind)) this.results[kind].set(containerID, uid, "Success");
      };
      if (started === true) believe("Startup");
      if (ready === true) believe("Readiness");
    }
  }

  /** Stops all workers of the pod and forgets its results. */
  removePod(uid: string): void {
    for (const worker of [...(this.#workers.get(uid)?.values() ?? [])]) worker.stop();
  }

  /** Stops the workers of every pod that should no longer be probed. */
  cleanUp(wantedUids: ReadonlySet<string>): void {
    for (const uid of [...this.#workers.keys()]) if (!wantedUids.has(uid)) this.removePod(uid);
  }

  stop(): void {
    this.cleanUp(new Set());
  }

  get workerCount(): number {
    let count = 0;
    for (const workers of this.#workers.values()) count += workers.size;
    return count;
  }

  /** Every running probe and its result. */
  list(): ProbeState[] {
    return [...this.#workers].flatMap(([uid, workers]) => {
      const pod = this.#options.readPod(uid);
      if (pod === undefined) return [];
      const { namespace = "", name } = pod.metadata;
      return Array.from(workers.values(), (worker) => ({
        namespace,
        pod: name,
        container: worker.containerName,
        probe: worker.kind,
        result: this.results[worker.kind].get(worker.containerId ?? ""),
        lastRound: worker.lastResult,
        rounds: worker.resultRun,
        lastFailure: this.#failures.get(worker),
      }));
    });
  }

  worker(podUid: string, containerName: string, kind: ProbeKind): ProbeWorker | undefined {
    return this.#workers.get(podUid)?.get(`${containerName}/${kind}`);
  }

  /**
   * The status with the probes' `started` and `ready`. A started container without a readiness
   * result is probed at once.
   */
  statusWithVerdicts(pod: Pod): PodStatus {
    return withVerdicts(pod, this);
  }

  isStarted(podUid: string, status: ContainerStatus): boolean {
    if (status.state?.running === undefined) return false;
    const result = this.results.Startup.get(status.containerID ?? "");
    if (result !== undefined) return result === "Success";
    return this.worker(podUid, status.name, "Startup") === undefined;
  }

  isReady(podUid: string, status: ContainerStatus): boolean {
    if (status.state?.running === undefined) return false;
    if (this.results.Readiness.get(status.containerID ?? "") === "Success") return true;
    const worker = this.worker(podUid, status.name, "Readiness");
    worker?.trigger();
    return worker === undefined;
  }

  #addWorker(uid: string, pod: Pod, container: Container, kind: ProbeKind): void {
    const workers = this.#workers.get(uid) ?? new Map<string, ProbeWorker>();
    const key = `${container.name}/${kind}`;
    const probe = probeOf(container, kind);
    if (probe === undefined || workers.has(key)) return;
    const { wheel, readPod, series, onCrash, wallClockMs = Date.now, random = Math.random } = this.#options;
    const timing = timingOf(probe);
    const counts = series({
      probe_type: kind,
      container: container.name,
      pod: pod.metadata.name,
      namespace: pod.metadata.namespace ?? "",
      pod_uid: uid,
    });
    const stopping = new AbortController();
    const worker = new ProbeWorker({
      kind,
      podUid: uid,
      containerName: container.name,
      timing,
      wheel,
      results: this.results[kind],
      readPod: () => readPod(uid),
      isStarted: (status) => this.isStarted(uid, status),
      wallClockMs,
      onCrash,
      runRound: async (containerId) => {
        const startMs = performance.now();
        const result = await this.#round(uid, kind, probe, {
          container,
          containerId,
          timeoutMs: timing.timeoutSeconds * 1_000,
          signal: stopping.signal,
        });
        if (result === undefined || stopping.signal.aborted) return result;
        const seconds = (performance.now() - startMs) / 1_000;
        counts.count(result === "Success" ? "successful" : "failed", seconds);
        return result;
      },
      onStopped: () => {
        stopping.abort();
        counts.remove();
        workers.delete(key);
        if (workers.size === 0) this.#workers.delete(uid);
      },
    });
    workers.set(key, worker);
    this.#workers.set(uid, workers);
    // After this process restarts, all pods appear at once; their probes are spread all the same.
    const periodMs = timing.periodSeconds * 1_000;
    const isFresh = wheel.now() - this.#startedMs < periodMs;
    worker.start(isFresh ? random() * periodMs : 0);
  }

  async #round(
    uid: string,
    kind: ProbeKind,
    probe: ProbeHandler,
    { container, containerId, ...options }: ProbedRound,
  ): Promise<RoundResult> {
    const { readPod, attempt, onEvent } = this.#options;
    const pod = readPod(uid);
    if (pod === undefined) return undefined;
    return runRound(
      kind,
      () => attempt(probe, { pod, container, containerId }, options),
      (event) => {
        if (options.signal.aborted) return;
        const worker = this.worker(uid, container.name, kind);
        if (worker !== undefined) this.#failures.set(worker, { cause: event.cause, at: new Date() });
        onEvent(pod, container.name, event);
      },
      probe.exec !== undefined,
    );
  }
}

interface ProbedRound {
  readonly container: Container;
  readonly containerId: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Containers, and init containers that run beside them (sidecars). */
export function probedContainers({ spec }: Pod): readonly Container[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  return [...spec.containers, ...sidecars];
}
