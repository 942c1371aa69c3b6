interface DeliveryThrottleOptions {
  readonly perSecond: number;
  /** Deliveries that may follow each other at once after a pause. */
  readonly burst: number;
}

/** A token bucket without a timer, evaluated on each delivery. */
export class DeliveryThrottle {
  readonly #intervalMs: number;
  readonly #burst: number;
  readonly #nowMs: () => number;
  /** When the bucket will be full again. */
  #fullAtMs = Number.NEGATIVE_INFINITY;

  /** `nowMs` must be monotonic. */
  constructor({ perSecond, burst }: DeliveryThrottleOptions, nowMs: () => number) {
    this.#intervalMs = 1_000 / perSecond;
    this.#burst = burst;
    this.#nowMs = nowMs;
  }

  /** Takes one delivery's token; returns how many milliseconds it must wait, 0 for none. */
  takeTurn(): number {
    const nowMs = this.#nowMs();
    this.#fullAtMs = Math.max(nowMs, this.#fullAtMs) + this.#intervalMs;
    return Math.max(0, this.#fullAtMs - nowMs - this.#burst * this.#intervalMs);
  }
}
