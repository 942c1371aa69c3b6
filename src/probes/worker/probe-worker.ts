import type { ContainerStatus, Pod } from "../../api/objects.ts";
import type { BelievedResult, ProbeKind, ProbeResults, ProbeTiming } from "./probe-results.ts";
import type { RoundResult } from "./prober.ts";
import type { TimerWheel, WheelEntry } from "./timer-wheel.ts";

/** Before the first round counts: alive, not ready, and not known to have started. */
const INITIAL_RESULTS: Readonly<Record<ProbeKind, BelievedResult>> = {
  Liveness: "Success",
  Readiness: "Failure",
  Startup: "Unknown",
};

interface ProbeWorkerOptions {
  readonly kind: ProbeKind;
  readonly podUid: string;
  readonly containerName: string;
  readonly timing: ProbeTiming;
  readonly wheel: TimerWheel;
  readonly results: ProbeResults;
  /** The pod's current state; undefined if it is not known yet. */
  readonly readPod: () => Pod | undefined;
  /** Whether the container has passed its startup probe. */
  readonly isStarted: (status: ContainerStatus) => boolean;
  /** Runs the probe; never rejects. */
  readonly runRound: (containerId: string) => Promise<RoundResult>;
  /** The worker ended or was stopped. */
  readonly onStopped: () => void;
  /** Receives an unexpected exception in a tick; the worker continues. */
  readonly onCrash: (error: unknown) => void;
  /** Milliseconds since the epoch, to compare with `startedAt`. */
  readonly wallClockMs: () => number;
}

/** Returns the first step of a tick. */
type TickDecision = "wait" | "stop" | "probe";

/**
 * The kubelet's worker: one probe of one container while the pod exists. Each tick checks the pod,
 * probes when due, and counts. Ticks keep a fixed rhythm from the first one.
 */
export class ProbeWorker {
  readonly #options: ProbeWorkerOptions;
  readonly #entry: WheelEntry;
  readonly #periodMs: number;
  #nextTickMs = 0;
  #containerId: string | undefined;
  #lastResult: BelievedResult | undefined;
  #resultRun = 0;
  #isOnHold = false;
  #isRunning = false;
  #isTriggered = false;
  #isStopped = false;

  constructor(options: ProbeWorkerOptions) {
    this.#options = options;
    this.#periodMs = options.timing.periodSeconds * 1_000;
    this.#entry = options.wheel.entry(() => void this.#tick());
  }

  /** `delayMs` spreads workers that start together. */
  start(delayMs = 0): void {
    this.#nextTickMs = this.#options.wheel.now() + delayMs;
    if (delayMs === 0) void this.#tick();
    else this.#options.wheel.set(this.#entry, this.#nextTickMs);
  }

  /** Probes now, out of turn, and restarts the period at this time. */
  trigger(): void {
    if (this.#isStopped) return;
    this.#isTriggered = true;
    if (!this.#isRunning) this.#options.wheel.set(this.#entry, this.#options.wheel.now());
  }

  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#options.wheel.clear(this.#entry);
    if (this.#containerId !== undefined) this.#options.results.remove(this.#containerId);
    this.#options.onStopped();
  }

  get kind(): ProbeKind {
    return this.#options.kind;
  }

  get containerName(): string {
    return this.#options.containerName;
  }

  get containerId(): string | undefined {
    return this.#containerId;
  }

  get isOnHold(): boolean {
    return this.#isOnHold;
  }

  /** The number of equal outcomes in a row; 0 after a threshold put the worker on hold. */
  get resultRun(): number {
    return this.#resultRun;
  }

  /** The outcome of the last counted round. */
  get lastResult(): BelievedResult | undefined {
    return this.#lastResult;
  }

  /** The time of the next tick, by the wheel's clock. */
  get nextTickMs(): number {
    return this.#nextTickMs;
  }

  async #tick(): Promise<void> {
    if (this.#isStopped || this.#isRunning) return;
    const { wheel } = this.#options;
    if (this.#isTriggered) this.#nextTickMs = wheel.now();
    this.#isTriggered = false;
    this.#isRunning = true;
    const goesOn = await this.#round();
    this.#isRunning = false;
    if (!goesOn) this.stop();
    if (this.#isStopped) return;
    this.#nextTickMs += this.#periodMs;
    const lateMs = wheel.now() - this.#nextTickMs;
    // After a long round, one missed tick runs at once; the others are dropped, and the rhythm
    // stays.
    const dueMs = this.#isTriggered ? wheel.now() : this.#nextTickMs;
    if (lateMs >= this.#periodMs) this.#nextTickMs += Math.floor(lateMs / this.#periodMs) * this.#periodMs;
    wheel.set(this.#entry, dueMs);
  }

  /** False if the worker is done. */
  async #round(): Promise<boolean> {
    try {
      const decision = this.#decide();
      if (decision !== "probe") return decision === "wait";
      const containerId = this.#containerId ?? "";
      const result = await this.#options.runRound(containerId);
      // The container may have been replaced meanwhile; the result does not count for the new one.
      if (!this.#isStopped && result !== undefined && containerId === this.#containerId) this.#count(result);
    } catch (error) {
      this.#options.onCrash(error);
    }
    return true;
  }

  #decide(): TickDecision {
    const { kind, timing, readPod, isStarted } = this.#options;
    const pod = readPod();
    if (pod?.status === undefined) return "wait";
    const { phase } = pod.status;
    if (phase === "Failed" || phase === "Succeeded") return "stop";
    const status = statusOf(pod, this.#options.containerName);
    if (status?.containerID === undefined || status.containerID === "") return "wait";
    if (status.containerID !== this.#containerId) this.#meet(status.containerID);
    if (this.#isOnHold) return "wait";
    const running = status.state?.running;
    if (running === undefined) {
      this.#believe("Failure");
      const isOver = status.state?.terminated !== undefined && pod.spec.restartPolicy === "Never";
      return isOver ? "stop" : "wait";
    }
    if (pod.metadata.deletionTimestamp !== undefined && kind !== "Readiness") {
      // A terminating container is not restarted.
      this.#believe("Success");
      return "stop";
    }
    const ageSeconds = (this.#options.wallClockMs() - Date.parse(running.startedAt ?? "")) / 1_000;
    if (Math.trunc(ageSeconds) < timing.initialDelaySeconds) return "wait";
    return isStarted(status) === (kind === "Startup") ? "wait" : "probe";
  }

  #meet(containerId: string): void {
    const { kind, podUid, results } = this.#options;
    if (this.#containerId !== undefined) results.remove(this.#containerId);
    this.#containerId = containerId;
    this.#isOnHold = false;
    // An earlier prober's result counts until there is a new one.
    if (results.get(containerId) === undefined) results.set(containerId, podUid, INITIAL_RESULTS[kind]);
  }

  #count(result: "Success" | "Failure"): void {
    const { kind, timing } = this.#options;
    this.#resultRun = result === this.#lastResult ? this.#resultRun + 1 : 1;
    this.#lastResult = result;
    const threshold = result === "Failure" ? timing.failureThreshold : timing.successThreshold;
    if (this.#resultRun < threshold) return;
    this.#believe(result);
    if (kind === "Startup" || (kind === "Liveness" && result === "Failure")) {
      // Until there is a new container, further probes would show nothing.
      this.#isOnHold = true;
      this.#resultRun = 0;
    }
  }

  #believe(result: BelievedResult): void {
    const { podUid, results } = this.#options;
    if (this.#containerId !== undefined) results.set(this.#containerId, podUid, result);
  }
}

/** The status of a container, or of an init container: sidecars are probed too. */
function statusOf({ status }: Pod, containerName: string): ContainerStatus | undefined {
  const statuses = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  return statuses.find(({ name }) => name === containerName);
}
