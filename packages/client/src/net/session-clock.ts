import { type FaultPlace, settleFault } from "../observability/faults.ts";

/** Called about once a second: for heartbeats, idle limits, deadlines. */
export interface Ticking {
  /** `nowMs` is monotonic and only meaningful against other values of the same clock. */
  tick(nowMs: number): void;
}

interface Owner {
  readonly where: FaultPlace;
  readonly onFailure: (error: unknown) => void;
}

const TICK_INTERVAL_MS = 1_000;

/**
 * One timer for all sessions, up to one second late. It runs only while a session listens, and does
 * not keep the process alive.
 */
export class SessionClock {
  readonly #listeners = new Set<Ticking>();
  /** `whenEmpty` does not wait for them. */
  readonly #followers = new Set<Ticking>();
  readonly #owners = new WeakMap<Ticking, Owner>();
  #emptied: (() => void)[] = [];
  readonly #intervalMs: number;
  #timer: NodeJS.Timeout | undefined;
  #isHurried = false;

  constructor(intervalMs: number = TICK_INTERVAL_MS) {
    this.#intervalMs = intervalMs;
  }

  /** Milliseconds, monotonic. */
  now(): number {
    return performance.now();
  }

  add(listener: Ticking): void {
    this.#listeners.add(listener);
    this.#start();
  }

  /** Adds what outlives sessions: the process ends without waiting for it. */
  addFollower(listener: Ticking): void {
    this.#followers.add(listener);
    this.#start();
  }

  delete(listener: Ticking): void {
    this.#listeners.delete(listener);
    this.#followers.delete(listener);
    if (this.#listeners.size > 0) return;
    for (const resolve of this.#emptied.splice(0)) resolve();
    if (this.#followers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #start(): void {
    this.#timer ??= setInterval(() => this.#tick(), this.#intervalMs).unref();
  }

  /**
   * Contains the listener's exceptions: they end only its owner. Without an owner the listener is
   * removed.
   */
  contain(listener: Ticking, where: FaultPlace, onFailure: (error: unknown) => void): void {
    this.#owners.set(listener, { where, onFailure });
  }

  /** True once the process shuts down. It then does not wait for the nodes of ended sessions. */
  get isHurried(): boolean {
    return this.#isHurried;
  }

  /** The process shuts down. Running sessions keep their time. */
  hurry(): void {
    this.#isHurried = true;
  }

  /** Resolves when no session runs and no connection lingers. */
  whenEmpty(): Promise<void> {
    return this.#listeners.size === 0
      ? Promise.resolve()
      : new Promise((resolve) => this.#emptied.push(resolve));
  }

  /** Expires all deadlines, so that lingering connections close. */
  expireAll(): void {
    for (const listener of [...this.#listeners, ...this.#followers])
      this.#tell(listener, Number.POSITIVE_INFINITY);
  }

  #tick(): void {
    const nowMs = this.now();
    for (const listener of this.#listeners) this.#tell(listener, nowMs);
    for (const listener of this.#followers) this.#tell(listener, nowMs);
  }

  #tell(listener: Ticking, nowMs: number): void {
    try {
      listener.tick(nowMs);
    } catch (error) {
      const { where, onFailure } = this.#owners.get(listener) ?? {
        where: "clock",
        onFailure: () => this.delete(listener),
      };
      settleFault(where, error, onFailure);
    }
  }
}
