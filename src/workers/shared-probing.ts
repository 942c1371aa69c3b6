import { isLasting, keyOfFinding, type ProbeFinding } from "./probe-findings.ts";

/** A worker as far as probes are concerned. */
export interface Prober {
  readonly isTaking: boolean;
  /** Milliseconds of a monotonic clock; undefined while it does not serve. */
  readonly readySinceMs: number | undefined;
  learn(findings: readonly ProbeFinding[]): void;
  /** It probes from now on; `isSuccessor`: after another one. */
  probe(isSuccessor: boolean): void;
}

/**
 * Lets one worker probe for all: the one that serves the longest, until it is gone. What it finds goes to the others, and to those that
 * start later.
 */
export class SharedProbing {
  readonly #workers: () => readonly Prober[];
  /** One for each pod of ours and each upstream that is dead. */
  readonly #latest = new Map<string, ProbeFinding>();
  #prober: Prober | undefined;
  #hasProbed = false;

  constructor(workers: () => readonly Prober[]) {
    this.#workers = workers;
  }

  /** It serves: it is told all that is known, and probes if nobody does. */
  ready(worker: Prober): void {
    if (this.#latest.size > 0) worker.learn([...this.#latest.values()]);
    this.#nameProber();
  }

  /** Those of a worker that is not the prober count for nothing. */
  found(worker: Prober, findings: readonly ProbeFinding[]): void {
    if (worker !== this.#prober) return;
    for (const finding of findings) {
      const key = keyOfFinding(finding);
      if (isLasting(finding)) this.#latest.set(key, finding);
      else this.#latest.delete(key);
    }
    for (const other of this.#workers()) if (other !== worker && other.isTaking) other.learn(findings);
  }

  /** `isExpected`: the whole gateway ends, and needs no successor. */
  gone(worker: Prober, isExpected: boolean): void {
    if (worker !== this.#prober) return;
    this.#prober = undefined;
    if (!isExpected) this.#nameProber();
  }

  #nameProber(): void {
    if (this.#prober !== undefined) return;
    const sinceMs = ({ readySinceMs }: Prober): number => readySinceMs ?? Number.POSITIVE_INFINITY;
    const [oldest] = this.#workers()
      .filter(({ isTaking }) => isTaking)
      .toSorted((one, other) => sinceMs(one) - sinceMs(other));
    if (oldest === undefined) return;
    this.#prober = oldest;
    oldest.probe(this.#hasProbed);
    this.#hasProbed = true;
  }
}
