import type { BelievedResult } from "./probe-kind.ts";

interface ResultChange {
  readonly containerId: string;
  readonly podUid: string;
  readonly result: BelievedResult;
}

/** One probe kind's verdicts about containers. Listeners hear changes only. */
export class ProbeResults {
  readonly #results = new Map<string, BelievedResult>();
  readonly #listeners = new Set<(change: ResultChange) => void>();

  get(containerId: string): BelievedResult | undefined {
    return this.#results.get(containerId);
  }

  set(containerId: string, podUid: string, result: BelievedResult): void {
    if (this.#results.get(containerId) === result) return;
    this.#results.set(containerId, result);
    for (const listener of [...this.#listeners]) listener({ containerId, podUid, result });
  }

  remove(containerId: string): void {
    this.#results.delete(containerId);
  }

  get size(): number {
    return this.#results.size;
  }

  subscribe(listener: (change: ResultChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
