/** Waits that double from `firstMs` to `maxMs`, each somewhere between half of it and one and a half: replicas do not come back together. */
export class Backoff {
  readonly #firstMs: number;
  readonly #maxMs: number;
  readonly #random: () => number;
  #nextMs: number;

  constructor({ firstMs = 500, maxMs = 30_000, random = Math.random } = {}) {
    this.#firstMs = firstMs;
    this.#maxMs = maxMs;
    this.#random = random;
    this.#nextMs = firstMs;
  }

  /** `atLeastMs`: what the other side asked for. */
  next(atLeastMs = 0): number {
    const waitMs = this.#nextMs * (0.5 + this.#random());
    this.#nextMs = Math.min(this.#nextMs * 2, this.#maxMs);
    // What was asked for is a floor, and reason to spread beyond it.
    return atLeastMs > 0 ? atLeastMs + Math.min(waitMs, atLeastMs) : waitMs;
  }

  reset(): void {
    this.#nextMs = this.#firstMs;
  }
}
