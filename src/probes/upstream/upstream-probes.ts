import { containAsync } from "@sluice/client/internal/observability/faults";
import type { ProbeResult } from "../probe-result.ts";
import type { ProbeTiming } from "../worker/probe-results.ts";
import { runRound } from "../worker/prober.ts";
import type { TimerWheel, WheelEntry } from "../worker/timer-wheel.ts";

/** An upstream with a health check. */
export interface UpstreamTarget {
  readonly name: string;
  /** Runs the check once; never rejects. */
  readonly attempt: (timeoutMs: number, signal: AbortSignal) => Promise<ProbeResult>;
}

interface UpstreamProbesOptions {
  readonly timing: ProbeTiming;
  readonly wheel: TimerWheel;
  /**
   * Called when a target is found dead, at every further round that finds it dead, and once when it
   * recovers. `reason` is the kubelet's text.
   */
  readonly report: (name: string, isHealthy: boolean, reason: string) => void;
  /** False if an earlier prober found it dead; absent if it was not probed before. */
  readonly wasHealthy?: ((name: string) => boolean) | undefined;
  /** Returns a number in [0, 1), to spread targets over a period. */
  readonly random?: () => number;
}

/**
 * Checks nodes or gateways with thresholds as for containers. A target is healthy until checks show
 * otherwise.
 */
export class UpstreamProbes {
  readonly #options: UpstreamProbesOptions;
  readonly #watched = new Map<string, WatchedTarget>();

  constructor(options: UpstreamProbesOptions) {
    this.#options = options;
  }

  /** Replaces the targets. Targets that stay keep their counts. */
  setTargets(targets: readonly UpstreamTarget[]): void {
    const names = new Set(targets.map(({ name }) => name));
    for (const [name, watched] of this.#watched) {
      if (names.has(name)) continue;
      watched.stop();
      this.#watched.delete(name);
    }
    for (const target of targets) {
      const known = this.#watched.get(target.name);
      if (known !== undefined) known.target = target;
      else this.#watched.set(target.name, new WatchedTarget(target, this.#options));
    }
  }

  /** False only for upstreams that checks found dead. */
  isHealthy(name: string): boolean {
    return this.#watched.get(name)?.isHealthy ?? true;
  }

  stop(): void {
    this.setTargets([]);
  }
}

class WatchedTarget {
  target: UpstreamTarget;
  isHealthy: boolean;
  readonly #options: UpstreamProbesOptions;
  readonly #entry: WheelEntry;
  readonly #stopping = new AbortController();
  #run = 0;
  #wasSuccess = true;

  constructor(target: UpstreamTarget, options: UpstreamProbesOptions) {
    this.target = target;
    this.#options = options;
    const { wheel, timing, wasHealthy, random = Math.random } = options;
    this.isHealthy = wasHealthy?.(target.name) ?? true;
    this.#entry = wheel.entry(() => containAsync("probe", this.#round(), () => this.#nextFrom(wheel.now())));
    wheel.set(this.#entry, wheel.now() + random() * timing.periodSeconds * 1_000);
  }

  stop(): void {
    this.#stopping.abort();
    this.#options.wheel.clear(this.#entry);
  }

  async #round(): Promise<void> {
    const { timing, wheel } = this.#options;
    const startMs = wheel.now();
    let reason = "";
    const result = await runRound(
      "Liveness",
      () => this.target.attempt(timing.timeoutSeconds * 1_000, this.#stopping.signal),
      ({ message }) => {
        reason = message;
      },
    );
    if (this.#stopping.signal.aborted) return;
    if (result !== undefined) this.#count(result === "Success", reason);
    this.#nextFrom(startMs);
  }

  #nextFrom(startMs: number): void {
    if (this.#stopping.signal.aborted) return;
    const { timing, wheel } = this.#options;
    wheel.set(this.#entry, Math.max(startMs + timing.periodSeconds * 1_000, wheel.now()));
  }

  #count(isSuccess: boolean, reason: string): void {
    const { timing, report } = this.#options;
    this.#run = isSuccess === this.#wasSuccess ? this.#run + 1 : 1;
    this.#wasSuccess = isSuccess;
    if (this.#run < (isSuccess ? timing.successThreshold : timing.failureThreshold)) return;
    // Repeated successes are not reported, because dial failures are counted separately.
    const isNews = isSuccess !== this.isHealthy;
    this.isHealthy = isSuccess;
    if (isNews || !isSuccess) report(this.target.name, isSuccess, reason);
  }
}
