import type { Cancellation } from "./cancellation-for.ts";

/** Why a probe's time is over: its own limit, or cancellation. */
export type DeadlineReason = "deadline" | "cancelled";

/** Node takes a longer time for none at all. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** One time limit over everything that a probe does: looking up, dialling, redirects, headers and body. */
export class ProbeDeadline {
  readonly #endMs: number;
  readonly #cancellation: Cancellation | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #listeners = new Set<() => void>();
  #reason: DeadlineReason | undefined;
  #isEnded = false;

  constructor(timeoutMs: number, cancellation?: Cancellation) {
    this.#endMs = performance.now() + timeoutMs;
    this.#cancellation = cancellation;
    // Where this process was late, answers may lie in the kernel unread: timers run before sockets are read, immediates after.
    this.#timer = setTimeout(
      () => setImmediate(() => this.#finish("deadline")),
      Math.min(timeoutMs, MAX_TIMER_MS),
    );
    cancellation?.add(this);
  }

  /** Cancels the probe. */
  cancel(): void {
    this.#finish("cancelled");
  }

  /** Undefined while there is time left. */
  get reason(): DeadlineReason | undefined {
    return this.#reason;
  }

  get remainingMs(): number {
    return this.#reason === undefined ? Math.max(0, this.#endMs - performance.now()) : 0;
  }

  /** Calls once when the time is over, later than now in any case; the returned function takes the listener back. */
  onOver(listener: () => void): () => void {
    if (this.#reason !== undefined) queueMicrotask(listener);
    else this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves after that long, or when the time is over. */
  sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const forget = this.onOver(() => {
        clearTimeout(timer);
        resolve();
      });
      const timer = setTimeout(() => {
        forget();
        resolve();
      }, milliseconds);
    });
  }

  /** The probe is done: no timer is left. */
  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    this.#cancellation?.delete(this);
    this.#listeners.clear();
  }

  #finish(reason: DeadlineReason): void {
    if (this.#isEnded) return;
    this.#reason = reason;
    const listeners = [...this.#listeners];
    this.end();
    for (const listener of listeners) listener();
  }
}
