interface Kept<T> {
  readonly value: T;
  readonly expiresMs: number;
}

/**
 * Caches decisions, each for its own time; beyond the bound the least recently used one is dropped.
 */
export class DecisionCache<T> {
  readonly #maxEntries: number;
  readonly #nowMs: () => number;
  /** A Map keeps insertion order, so the first key is the least recently used. */
  readonly #kept = new Map<string, Kept<T>>();

  /** `nowMs` must be monotonic. */
  constructor(maxEntries: number, nowMs: () => number) {
    this.#maxEntries = maxEntries;
    this.#nowMs = nowMs;
  }

  get size(): number {
    return this.#kept.size;
  }

  get(key: string): T | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    this.#kept.delete(key);
    if (kept.expiresMs <= this.#nowMs()) return undefined;
    this.#kept.set(key, kept);
    return kept.value;
  }

  set(key: string, value: T, ttlMs: number): void {
    this.#kept.delete(key);
    if (ttlMs <= 0) return;
    this.#kept.set(key, { value, expiresMs: this.#nowMs() + ttlMs });
    if (this.#kept.size <= this.#maxEntries) return;
    const oldest = this.#kept.keys().next();
    if (!oldest.done) this.#kept.delete(oldest.value);
  }
}
