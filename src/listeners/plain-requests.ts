import type { HttpDownstream } from "../http/downstream/http-downstream.ts";
import { contain } from "../observability/faults.ts";
import { isLongRunning } from "./exchange-times.ts";
import { InFlight } from "./in-flight.ts";

/** How often clients that take nothing are looked for, in one `streamIdleMs`: one is let go later by so much at most. */
const LOOKS_PER_IDLE_TIME = 4;

/** The plain requests in progress, for which a shutdown waits. Watches and followed logs are not waited for: their clients reconnect. */
export class PlainRequests {
  readonly #maxInFlight: number;
  readonly #emptied: (() => void)[] = [];
  readonly #inFlight = new InFlight<HttpDownstream>();
  /** Watches and followed logs. */
  readonly #longRunning = new InFlight<HttpDownstream>();
  readonly #streamIdleMs: number;
  #look: NodeJS.Timeout | undefined;
  #isDraining = false;

  /** `streamIdleMs`: so long may a client take nothing of what waits for it. */
  constructor(maxInFlight: number, streamIdleMs: number) {
    this.#maxInFlight = maxInFlight;
    this.#streamIdleMs = streamIdleMs;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** To be called with each request before it is answered. False: it is one too many, and is to be refused. */
  add(downstream: HttpDownstream): boolean {
    if (isLongRunning(downstream.target)) {
      this.closeIfDraining(downstream);
      this.#longRunning.add(downstream);
      this.#startLooking();
      downstream.onClose(() => this.#longRunning.delete(downstream));
      return true;
    }
    if (!this.begin(downstream)) return false;
    downstream.onClose(() => this.end(downstream));
    return true;
  }

  /** As `add`, for a caller that watches the request itself: after true `end` has to be called, whatever becomes of it. */
  begin(downstream: HttpDownstream): boolean {
    this.closeIfDraining(downstream);
    if (this.#inFlight.size >= this.#maxInFlight) return false;
    this.#inFlight.add(downstream);
    this.#startLooking();
    return true;
  }

  end(downstream: HttpDownstream): void {
    this.#inFlight.delete(downstream);
    if (this.#inFlight.size === 0) for (const resolve of this.#emptied.splice(0)) resolve();
  }

  /** A connection that is kept would bring another request each time. */
  closeIfDraining(downstream: HttpDownstream): void {
    if (this.#isDraining) downstream.closeConnectionAfter();
  }

  /** One timer for all exchanges, and nothing on the way of their bytes: the clock of a client runs while something waits for it. */
  #startLooking(): void {
    this.#look ??= setInterval(() => {
      if (this.#inFlight.size + this.#longRunning.size === 0) {
        clearInterval(this.#look);
        this.#look = undefined;
      }
      for (const requests of [this.#inFlight, this.#longRunning])
        for (const downstream of requests)
          contain(
            "listener",
            () => downstream.expectTaking(downstream.hasTakenAll ? 0 : this.#streamIdleMs),
            () => downstream.abort(),
          );
    }, this.#streamIdleMs / LOOKS_PER_IDLE_TIME).unref();
  }

  /** Each connection is closed after its next answer. To be called when sessions begin to drain. */
  drain(): void {
    this.#isDraining = true;
    for (const downstream of this.#inFlight) downstream.closeConnectionAfter();
  }

  /** Resolves when the last answer is out or after `timeoutMs`. To be called after `drain`, when no connection is accepted any more. */
  finish(timeoutMs: number): Promise<void> {
    if (this.#inFlight.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#emptied.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}
