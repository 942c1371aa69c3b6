interface Kept<T> {
  readonly value: T;
  readonly expiresMs: number;
  readonly holder: string;
}

/**
 * The part of a full cache that one holder may fill. Past it the holder's own entries are dropped.
 */
const HOLDER_SHARE = 1 / 4;

/**
 * Caches decisions, each for its own time. A full cache drops the least recently used entry, or the
 * writer's own if the writer holds more than a quarter of the cache.
 */
export class DecisionCache<T> {
  readonly #maxEntries: number;
  readonly #nowMs: () => number;
  /** Maps and Sets keep insertion order, so the first key is the least recently used. */
  readonly #kept = new Map<string, Kept<T>>();
  readonly #keysOf = new Map<string, Set<string>>();

  /** `nowMs` must be monotonic. */
  constructor(maxEntries: number, nowMs: () => number) {
    this.#maxEntries = maxEntries;
    this.#nowMs = nowMs;
  }

  get size(): number {
    return this.#kept.size;
  }

  get(key: string): T | undefined {
    const kept = this.#drop(key);
    if (kept === undefined || kept.expiresMs <= this.#nowMs()) return undefined;
    this.#keep(key, kept);
    return kept.value;
  }

  /** `holder`: the user whose requests fill the cache. */
  set(key: string, value: T, ttlMs: number, holder = ""): void {
    this.#drop(key);
    if (ttlMs <= 0) return;
    const own = this.#keep(key, { value, expiresMs: this.#nowMs() + ttlMs, holder });
    if (this.#kept.size <= this.#maxEntries) return;
    const [oldest] = own.size > Math.max(1, this.#maxEntries * HOLDER_SHARE) ? own : this.#kept.keys();
    if (oldest !== undefined) this.#drop(oldest);
  }

  /** Returns the keys of this holder. */
  #keep(key: string, kept: Kept<T>): ReadonlySet<string> {
    this.#kept.set(key, kept);
    const own = this.#keysOf.get(kept.holder) ?? new Set();
    this.#keysOf.set(kept.holder, own.add(key));
    return own;
  }

  #drop(key: string): Kept<T> | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    this.#kept.delete(key);
    const own = this.#keysOf.get(kept.holder);
    own?.delete(key);
    if (own?.size === 0) this.#keysOf.delete(kept.holder);
    return kept;
  }
}
