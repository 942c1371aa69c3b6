/** How late a paced direction may be woken. Also what may pass at once after a silence: a tenth of a second's worth. */
const SLOT_MS = 20;
const BURST_SECONDS = 0.1;

/**
 * The bytes per second of each session and direction, as kube-apiserver's --max-connection-bytes-per-sec. Token buckets, settled after
 * each read; those that wait share one timer.
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

  /** The account of one direction of one session. */
  direction(): Pace {
    return new Pace(this, this.#bytesPerMs);
  }

  now(): number {
    return this.#nowMs();
  }

  /** Calls `wake` once, when so many milliseconds have passed, or up to 20 ms later. */
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

/** What one direction has used up. */
export class Pace {
  readonly #bandwidth: Bandwidth;
  readonly #bytesPerMs: number;
  /** When all that has passed is paid for. */
  #paidAtMs = Number.NEGATIVE_INFINITY;

  constructor(bandwidth: Bandwidth, bytesPerMs: number) {
    this.#bandwidth = bandwidth;
    this.#bytesPerMs = bytesPerMs;
  }

  /** So many bytes have passed: how long nothing may follow, in milliseconds; 0 is not at all. */
  spend(bytes: number): number {
    const nowMs = this.#bandwidth.now();
    const leastMs = nowMs - BURST_SECONDS * 1_000;
    this.#paidAtMs = Math.max(leastMs, this.#paidAtMs) + bytes / this.#bytesPerMs;
    return Math.max(0, this.#paidAtMs - nowMs);
  }

  wakeIn(waitMs: number, wake: () => void): void {
    this.#bandwidth.wakeIn(waitMs, wake);
  }
}
