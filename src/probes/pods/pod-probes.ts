import { isDeepStrictEqual } from "node:util";
import { reportFault } from "@sluice/client/internal/observability/faults";
import type { ContainerStatus, ObjectChange, Pod, PodStatus } from "../../api/objects.ts";
import type { ProbeLabels, ProbeSeries } from "../../observability/probe-metrics.ts";
import type { RunCommand } from "../exec-probe.ts";
import type { ProbeGates } from "../probe-target.ts";
import type { RunProbe } from "../run-probe.ts";
import { withReadyConditions } from "../worker/derive-status.ts";
import { ProbeManager } from "../worker/probe-manager.ts";
import type { ProbeState } from "../worker/probe-results.ts";
import type { ProbeEvent } from "../worker/prober.ts";
import type { TimerWheel } from "../worker/timer-wheel.ts";
import { type RestartRequest, restartRequest } from "./restart.ts";

/** The source of pods, e.g. a Cluster. */
interface PodSource {
  listPods(): readonly Pod[];
  subscribe(listener: (change: ObjectChange) => void): () => void;
}

interface PodProbesOptions {
  readonly pods: PodSource;
  /** Whether the pod is on a node that this gateway fronts. */
  readonly isOurs: (pod: Pod) => boolean;
  /** Publishes a pod's status. Called only for changes; if it fails, the next change repeats it. */
  readonly publish: (pod: Pod, status: PodStatus) => void | Promise<void>;
  /** Ends a container so that it restarts; absent if another program owns the runtime. */
  readonly restart?: ((request: RestartRequest) => Promise<void>) | undefined;
  /** Runs commands in a container; undefined: no commands can run. */
  readonly runCommand?: ((containerId: string) => RunCommand) | undefined;
  readonly wheel: TimerWheel;
  readonly runProbe: RunProbe;
  readonly gates: ProbeGates;
  readonly userAgentVersion: string;
  readonly series: (labels: ProbeLabels) => ProbeSeries;
  readonly onEvent: (pod: Pod, containerName: string, event: ProbeEvent) => void;
  readonly onProblem: (what: string, error: unknown) => void;
  readonly random?: () => number;
}

/**
 * Probes the containers of the configured pods and publishes `started` and `ready`. The runtime's
 * report (`reportStatus`) takes precedence; without one the pod's own status counts.
 */
export class PodProbes {
  readonly #options: PodProbesOptions;
  readonly #manager: ProbeManager;
  readonly #pods = new Map<string, Pod>();
  /** Keyed by pod uid. */
  readonly #reported = new Map<string, PodStatus>();
  readonly #startedAt = new Date().toISOString();
  readonly #stops: (() => void)[] = [];

  constructor(options: PodProbesOptions) {
    this.#options = options;
    const { wheel, series, onEvent, random } = options;
    this.#manager = new ProbeManager({
      wheel,
      readPod: (uid) => this.#viewOf(uid),
      attempt: (handler, { pod, container, containerId }, { timeoutMs, signal }) =>
        options.runProbe(
          handler,
          {
            host: pod.status?.podIP ?? "",
            containerPorts: container.ports ?? [],
            environment: Array.isArray(container.env) ? container.env : [],
            runCommand: options.runCommand?.(containerId),
            name: `${pod.metadata.name}:${container.name}`,
          },
          { timeoutMs, signal, userAgentVersion: options.userAgentVersion, gates: options.gates },
        ),
      series,
      onEvent,
      onCrash: (error) => reportFault("probe", error),
      ...(random && { random }),
    });
  }

  /** `isSuccessor`: another prober ran before, and pods' statuses count until there are results. */
  start(isSuccessor = false): void {
    const { pods } = this.#options;
    const { Liveness, Readiness, Startup } = this.#manager.results;
    for (const results of [Readiness, Startup]) {
      this.#stops.push(results.subscribe(({ podUid }) => this.#publishLater(podUid)));
    }
    for (const [kind, results] of [
      ["Liveness", Liveness],
      ["Startup", Startup],
    ] as const) {
      this.#stops.push(
        results.subscribe(({ containerId, podUid, result }) => {
          if (result === "Failure") this.#restart(podUid, containerId, kind);
        }),
      );
    }
    this.#stops.push(pods.subscribe((change) => this.#heard(change)));
    for (const pod of pods.listPods()) {
      this.#see(pod);
      const view = isSuccessor ? this.#viewOf(pod.metadata.uid ?? "") : undefined;
      if (view !== undefined) this.#manager.believeStatus(view);
    }
  }

  stop(): void {
    for (const stop of this.#stops.splice(0)) stop();
    this.#manager.stop();
    this.#pods.clear();
    this.#reported.clear();
  }

  /** The runtime's view of a pod's containers: ids, states, the pod's IP. */
  reportStatus(podUid: string, status: PodStatus): void {
    // Ignores unknown pods: a runtime may report them early and is queried again.
    if (!this.#pods.has(podUid) || isDeepStrictEqual(this.#reported.get(podUid), status)) return;
    this.#reported.set(podUid, status);
    this.#publishLater(podUid);
  }

  /** Every running probe and its result. */
  list(): readonly ProbeState[] {
    return this.#manager.list();
  }

  get workerCount(): number {
    return this.#manager.workerCount;
  }

  #heard({ type, object }: ObjectChange): void {
    if (object.kind !== "Pod") return;
    const uid = object.metadata.uid ?? "";
    if (type !== "DELETED" && this.#options.isOurs(object)) {
      this.#see(object);
    } else if (this.#pods.delete(uid)) {
      this.#reported.delete(uid);
      this.#manager.removePod(uid);
    }
  }

  #see(pod: Pod): void {
    const uid = pod.metadata.uid ?? "";
    if (!this.#options.isOurs(pod)) return;
    const known = this.#pods.get(uid);
    this.#pods.set(uid, pod);
    // A pod's probes never change, but containers may be added.
    if (known?.spec !== pod.spec) this.#manager.addPod(pod);
    this.#publishLater(uid);
  }

  /**
   * Collects the results of one tick into one status. Deferred, because a store listener must not
   * trigger another.
   */
  readonly #waiting = new Set<string>();

  #publishLater(uid: string): void {
    if (this.#waiting.size === 0) queueMicrotask(() => this.#publishWaiting());
    this.#waiting.add(uid);
  }

  #publishWaiting(): void {
    const uids = [...this.#waiting];
    this.#waiting.clear();
    for (const uid of uids) void this.#publish(uid);
  }

  async #publish(uid: string): Promise<void> {
    const pod = this.#pods.get(uid);
    const view = this.#viewOf(uid);
    if (pod === undefined || view === undefined) return;
    const judged = this.#manager.statusWithVerdicts(view);
    const status = withReadyConditions(pod, this.#withoutMadeUpIds(pod, judged), new Date());
    if (isDeepStrictEqual(pod.status, status)) return;
    try {
      await this.#options.publish(pod, status);
    } catch (error) {
      this.#options.onProblem("a pod's status could not be published", error);
    }
  }

  #restart(uid: string, containerId: string, kind: "Liveness" | "Startup"): void {
    const { restart, onEvent, onProblem } = this.#options;
    const pod = this.#viewOf(uid);
    const container = statusesOf(pod?.status).find((each) => each.containerID === containerId);
    if (pod === undefined || container === undefined) return;
    const request = restartRequest(pod, container.name, containerId, kind);
    if (restart === undefined) return;
    onEvent(pod, container.name, request.event);
    restart(request).catch((error: unknown) => onProblem("a container could not be ended", error));
  }

  /**
   * The pod with its containers' known states. A container that only a manifest reports as running
   * gets an id, and a new one at each restart.
   */
  #viewOf(uid: string): Pod | undefined {
    const pod = this.#pods.get(uid);
    if (pod === undefined) return undefined;
    const reported = this.#reported.get(uid);
    if (reported !== undefined) return { ...pod, status: { ...pod.status, ...reported } };
    const identified = (status: ContainerStatus): ContainerStatus => {
      if (status.containerID || status.state?.running === undefined) return status;
      const { startedAt = this.#startedAt } = status.state.running;
      const containerID = madeUpId(uid, status);
      return { ...status, containerID, state: { running: { startedAt } } };
    };
    const { status = {} } = pod;
    return {
      ...pod,
      status: {
        ...status,
        ...(status.containerStatuses && { containerStatuses: status.containerStatuses.map(identified) }),
        ...(status.initContainerStatuses && {
          initContainerStatuses: status.initContainerStatuses.map(identified),
        }),
      },
    };
  }

  #withoutMadeUpIds({ status = {}, metadata }: Pod, judged: PodStatus): PodStatus {
    const restored = (container: ContainerStatus): ContainerStatus => {
      if (container.containerID !== madeUpId(metadata.uid ?? "", container)) return container;
      const given = statusesOf(status).find(({ name }) => name === container.name);
      const { started, ready } = container;
      return given === undefined
        ? container
        : { ...given, ...(started !== undefined && { started }), ...(ready !== undefined && { ready }) };
    };
    return {
      ...judged,
      ...(judged.containerStatuses && { containerStatuses: judged.containerStatuses.map(restored) }),
      ...(judged.initContainerStatuses && {
        initContainerStatuses: judged.initContainerStatuses.map(restored),
      }),
    };
  }
}

function madeUpId(uid: string, { name, restartCount = 0 }: ContainerStatus): string {
  return `sluice://${uid}/${name}/${restartCount}`;
}

function statusesOf({ containerStatuses = [], initContainerStatuses = [] }: PodStatus = {}) {
  return [...containerStatuses, ...initContainerStatuses];
}
