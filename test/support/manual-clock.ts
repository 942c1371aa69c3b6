import { SessionClock, type Ticking } from "../../packages/client/src/net/session-clock.ts";

/**
 * A session clock that stands still until a test moves it: hours pass at once, and no event happens
 * by chance.
 */
export class ManualClock extends SessionClock {
  readonly #waiting = new Set<Ticking>();
  #nowMs = 1_000_000;

  override now(): number {
    return this.#nowMs;
  }

  override add(listener: Ticking): void {
    this.#waiting.add(listener);
  }

  override delete(listener: Ticking): void {
    this.#waiting.delete(listener);
  }

  /** Notifies each listener of the new time once, as if the timer had been late. */
  advance(milliseconds: number): void {
    this.#nowMs += milliseconds;
    for (const listener of [...this.#waiting]) listener.tick(this.#nowMs);
  }

  /** The number of listeners: running sessions, lingering sockets. */
  get listenerCount(): number {
    return this.#waiting.size;
  }
}
