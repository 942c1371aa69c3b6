export interface DeliveryThrottleOptions {
  readonly perSecond: number;
  /** How many may leave at once after a silence. */
  readonly burst: number;
}

/** A token bucket that is evaluated on each delivery: it has no timer of its own. */
export class DeliveryThrottle {
  readonly #intervalMs: number;
  readonly #burst: number;
  readonly #nowMs: () => number;
  /** When the bucket is full again. */
  #fullAtMs = Number.NEGATIVE_INFINITY;

  /** `nowMs` must be monotonic. */
  constructor({ perSecond, burst }: DeliveryThrottleOptions, nowMs: () => number) {
    this.#intervalMs = 1_000 / perSecond;
    this.#burst = burst;
    this.#nowMs = nowMs;
  }

  /** Takes one delivery's token; returns the milliseconds until its turn, 0 at once. */
  takeTurn(): number {
    const nowMs = this.#nowMs();
    this.#fullAtMs = Math.max(nowMs, this.#fullAtMs) + this.#intervalMs;
    return Math.max(0, this.#fullAtMs - nowMs - this.#burst * this.#intervalMs);
  }
}
