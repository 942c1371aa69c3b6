import { StatusError } from "@sluice/client/internal/api/status";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import type { NodeCircuit } from "../config/sections/kubelet.ts";

export type CircuitState = "closed" | "open" | "half-open";

/**
 * Whether the node may be dialled now. A `trial` is the one dial that tests whether a dead node is
 * back.
 */
type Admission =
  | { readonly kind: "dial" }
  | { readonly kind: "trial" }
  | { readonly kind: "refused"; readonly reason: string; readonly retryInMs: number };

/** A refused connection costs little, so a restarted kubelet is tried again this soon. */
const REFUSED_RETRY_MS = 1_000;

/**
 * Refuses dials of an unresponsive node at once (docs/node-capability.md). Times are milliseconds of one monotonic clock.
 *
 *   closed -- `failures` dials fail in a row, or a probe fails --> open
 *   open -- the pause ends --> half-open: one trial; every other dial is refused at once
 *   half-open -- the trial reaches the node --> closed; fails --> open, for twice as long; is refused --> for a second at most
 */
export class CircuitBreaker {
  readonly #settings: NodeCircuit;
  #failures = 0;
  #reason = "";
  /** 0 while the circuit is closed. */
  #pauseMs = 0;
  #openUntilMs = 0;
  #isTrialRunning = false;

  constructor(settings: NodeCircuit) {
    this.#settings = settings;
  }

  admit(nowMs: number): Admission {
    if (this.#pauseMs === 0) return { kind: "dial" };
    if (nowMs >= this.#openUntilMs && !this.#isTrialRunning) {
      this.#isTrialRunning = true;
      return { kind: "trial" };
    }
    return {
      kind: "refused",
      reason: this.#reason,
      retryInMs: Math.max(0, this.#openUntilMs - nowMs),
    };
  }

  /** The node answered, or a probe succeeded. */
  succeeded(): void {
    this.#failures = 0;
    this.#pauseMs = 0;
    this.#isTrialRunning = false;
  }

  /**
   * A dial failed. `wasRefused`: the node itself refused it at once. A dial that began before the
   * opening does not lengthen the pause.
   */
  failed(nowMs: number, reason: string, wasTrial: boolean, wasRefused = false): void {
    this.#reason = reason;
    this.#failures += 1;
    if (wasTrial) this.#isTrialRunning = false;
    const opensNow = this.#pauseMs === 0 && this.#failures >= this.#settings.failures;
    if (opensNow || wasTrial) this.#open(nowMs, wasRefused);
  }

  /** A trial ended without a result: the client left. */
  abandoned(): void {
    this.#isTrialRunning = false;
  }

  /** A probe, which has its own thresholds, found that the node is dead. */
  declaredDead(nowMs: number, reason: string): void {
    this.#reason = reason;
    this.#failures = Math.max(this.#failures, this.#settings.failures);
    if (!this.#isTrialRunning) this.#open(nowMs);
  }

  state(nowMs: number): CircuitState {
    if (this.#pauseMs === 0) return "closed";
    return nowMs >= this.#openUntilMs ? "half-open" : "open";
  }

  /** True until the node is reached, also during a trial. */
  get isOpen(): boolean {
    return this.#pauseMs > 0;
  }

  get failures(): number {
    return this.#failures;
  }

  /** Why the last dial failed; "" if none did. */
  get reason(): string {
    return this.#reason;
  }

  retryInMs(nowMs: number): number {
    return this.#pauseMs === 0 ? 0 : Math.max(0, this.#openUntilMs - nowMs);
  }

  #open(nowMs: number, wasRefused = false): void {
    const { retryMs, maxRetryMs } = this.#settings;
    if (this.#pauseMs === 0 || wasRefused) this.#pauseMs = retryMs;
    else this.#pauseMs = Math.min(this.#pauseMs * 2, maxRetryMs);
    this.#openUntilMs = nowMs + (wasRefused ? Math.min(this.#pauseMs, REFUSED_RETRY_MS) : this.#pauseMs);
  }
}

/**
 * 503 without a dial, because the node's circuit is open. The opening was logged, so requests need
 * not log it again.
 */
export class CircuitOpenError extends StatusError {
  constructor(name: string, failures: number, reason: string, retryInMs: number) {
    const seconds = Math.max(1, Math.ceil(retryInMs / 1_000));
    const times = failures === 1 ? "once" : `${failures} times in a row`;
    const node = JSON.stringify(name);
    super(WIRE_ERRORS["node-failing"].streaming({ node, times, seconds, reason }).status);
  }
}
