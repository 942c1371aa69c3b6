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

/** One container's probe as `/debug/probes` shows it: without any request, output or response. */
export interface ProbeState {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly probe: "Liveness" | "Readiness" | "Startup";
  /** The verdict about the container; absent: none yet. */
  readonly result?: string | undefined;
  /** The outcome of the last counted round, and the number of equal outcomes in a row. */
  readonly lastRound?: string | undefined;
  readonly rounds: number;
  /** Cause and time of the last unsuccessful round. */
  readonly lastFailure?: { readonly cause: string | undefined; readonly at: Date } | undefined;
}
