/**
 * Delays that double from `firstMs` to `maxMs`, each multiplied by a random 0.5 to 1.5, so that
 * replicas do not retry together.
 */
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

  /** `atLeastMs`: the wait that the other side requested. */
  next(atLeastMs = 0): number {
    const waitMs = this.#nextMs * (0.5 + this.#random());
    this.#nextMs = Math.min(this.#nextMs * 2, this.#maxMs);
    // The requested wait is a minimum; the jitter comes on top.
    return atLeastMs > 0 ? atLeastMs + Math.min(waitMs, atLeastMs) : waitMs;
  }

  reset(): void {
    this.#nextMs = this.#firstMs;
  }
}
