/**
 * How late a paced direction may be woken. After a silence it may send a burst of a tenth of a
 * second's bytes at once.
 */
const SLOT_MS = 20;
const BURST_SECONDS = 0.1;

/**
 * Limits each session's bytes per second in each direction, like kube-apiserver's --max-connection-
 * bytes-per-sec. Token buckets, charged after each read; waiting directions share one timer.
 */
export class Bandwidth {
  readonly #bytesPerMs: number;
  readonly #nowMs: () => number;
  readonly #slots = new Map<number, (() => void)[]>();
  #timer: NodeJS.Timeout | undefined;
  #lastSlot = 0;

  /** `nowMs` must be monotonic. */
  constructor(bytesPerSecond: number, nowMs: () => number = () => performance.now()) {
    this.#bytesPerMs = bytesPerSecond / 1_000;
    this.#nowMs = nowMs;
  }

  get bytesPerMs(): number {
    return this.#bytesPerMs;
  }

  now(): number {
    return this.#nowMs();
  }

  /** Calls `wake` once, after `waitMs` or up to 20 ms later. */
  wakeIn(waitMs: number, wake: () => void): void {
    if (this.#timer === undefined) {
      this.#lastSlot = this.#slotOf(this.#nowMs());
      this.#timer = setInterval(() => this.#turn(), SLOT_MS).unref();
    }
    const slot = Math.max(this.#lastSlot + 1, this.#slotOf(this.#nowMs() + waitMs) + 1);
    const waiting = this.#slots.get(slot);
    if (waiting === undefined) this.#slots.set(slot, [wake]);
    else waiting.push(wake);
  }

  #slotOf(timeMs: number): number {
    return Math.floor(timeMs / SLOT_MS);
  }

  #turn(): void {
    const nowSlot = this.#slotOf(this.#nowMs());
    while (this.#lastSlot < nowSlot) {
      this.#lastSlot += 1;
      const due = this.#slots.get(this.#lastSlot);
      this.#slots.delete(this.#lastSlot);
      for (const wake of due ?? []) wake();
    }
    if (this.#slots.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/** When one direction of a session may be read: within its bandwidth, and not while it is held. */
export class Pace {
  readonly #bandwidth: Bandwidth | undefined;
  #holds = 0;
  #onHold: () => void = () => {};
  /** When the bytes sent so far are paid for. */
  #paidAtMs = Number.NEGATIVE_INFINITY;

  /** With `bandwidth` the direction has its own token bucket. */
  constructor(bandwidth?: Bandwidth | undefined) {
    this.#bandwidth = bandwidth;
  }

  get isHeld(): boolean {
    return this.#holds > 0;
  }

  /** Reads nothing until the returned function is called. Holds add up. */
  hold(): () => void {
    this.#holds += 1;
    if (this.#holds === 1) this.#onHold();
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      this.#holds -= 1;
      if (this.#holds === 0) this.#onHold();
    };
  }

  /** For `feed`: called whenever `isHeld` has changed. */
  onHold(changed: () => void): void {
    this.#onHold = changed;
  }

  /** Charges `bytes`. Returns how long the direction must pause, in milliseconds; 0: not at all. */
  spend(bytes: number): number {
    if (this.#bandwidth === undefined) return 0;
    const nowMs = this.#bandwidth.now();
    const leastMs = nowMs - BURST_SECONDS * 1_000;
    this.#paidAtMs = Math.max(leastMs, this.#paidAtMs) + bytes / this.#bandwidth.bytesPerMs;
    return Math.max(0, this.#paidAtMs - nowMs);
  }

  wakeIn(waitMs: number, wake: () => void): void {
    this.#bandwidth?.wakeIn(waitMs, wake);
  }
}
