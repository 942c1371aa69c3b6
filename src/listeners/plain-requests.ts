import type { HttpDownstream } from "../http/http-downstream.ts";

/**
 * The plain requests that a listener is answering, so that a shutdown can wait for them. Those that have no end of their own, watches and
 * followed logs, are not waited for: their clients ask again elsewhere.
 */
export class PlainRequests {
  readonly #stopListening: () => void;
  readonly #maxInFlight: number;
  readonly #emptied: (() => void)[] = [];
  readonly #inFlight = new Set<HttpDownstream>();
  #isDraining = false;

  /** `stopListening`: takes no new connections. */
  constructor(maxInFlight: number, stopListening: () => void) {
    this.#maxInFlight = maxInFlight;
    this.#stopListening = stopListening;
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** To be called with each request before it is answered. False: it is one too many, and is to be refused. */
  add(downstream: HttpDownstream): boolean {
    if (isLongRunning(downstream.target)) {
      this.closeIfDraining(downstream);
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

  /** Each connection is closed after its next answer. To be called when sessions begin to drain. */
  drain(): void {
    this.#isDraining = true;
    for (const downstream of this.#inFlight) downstream.closeConnectionAfter();
  }

  /** Takes no new connections, and resolves when the last answer is out or after `timeoutMs`. To be called after `drain`. */
  finish(timeoutMs: number): Promise<void> {
    this.#stopListening();
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

/** By its URL, as kube-apiserver's long-running check: `watch=true`, `follow=true`, and paths below a version's `/watch/`. */
function isLongRunning(url: string): boolean {
  return /[?&](watch|follow)=(true|1)(&|$)/.test(url) || /^\/apis?\/[^?]*\/watch\//.test(url);
}
