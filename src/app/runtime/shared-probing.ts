import { isLasting, keyOfFinding, type ProbeUpdate } from "../../probes/probe-update.ts";

/** A worker as far as probes are concerned. */
export interface Prober {
  readonly isTaking: boolean;
  /** Milliseconds of a monotonic clock; undefined while it does not serve. */
  readonly readySinceMs: number | undefined;
  learn(findings: readonly ProbeUpdate[]): void;
  /** It probes from now on; `isSuccessor`: after another one. Rejects when it cannot. */
  probe(isSuccessor: boolean): Promise<unknown>;
}

/** What is notified. */
export interface ProbingObserver<Worker extends Prober> {
  /** Another one probes, or none for now. */
  onProber(worker: Worker | undefined): void;
  /** It was named, and could not begin; or it was gone before it had. */
  onFailed(worker: Worker, error: Error): void;
}

/**
 * Lets one worker probe for all: the one that serves the longest, until it is gone. What it finds goes to the others, and to those that
 * start later.
 */
export class SharedProbing<Worker extends Prober> {
  readonly #workers: () => readonly Worker[];
  readonly #observer: ProbingObserver<Worker>;
  /** One for each pod of ours and each upstream that is dead. */
  readonly #latest = new Map<string, ProbeUpdate>();
  #prober: Worker | undefined;
  #hasProbed = false;

  constructor(workers: () => readonly Worker[], observer: ProbingObserver<Worker>) {
    this.#workers = workers;
    this.#observer = observer;
  }

  /** It serves: it receives all that is known, and probes if no worker does. */
  ready(worker: Worker): void {
    if (this.#latest.size > 0) worker.learn([...this.#latest.values()]);
    this.#nameProber();
  }

  /** Those of a worker that is not the prober count for nothing. */
  found(worker: Worker, findings: readonly ProbeUpdate[]): void {
    if (worker !== this.#prober) return;
    for (const finding of findings) {
      const key = keyOfFinding(finding);
      if (isLasting(finding)) this.#latest.set(key, finding);
      else this.#latest.delete(key);
    }
    for (const other of this.#workers()) if (other !== worker && other.isTaking) other.learn(findings);
  }

  /** `isExpected`: the whole gateway ends, and needs no successor. */
  gone(worker: Worker, isExpected: boolean): void {
    if (worker !== this.#prober) return;
    this.#prober = undefined;
    this.#observer.onProber(undefined);
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
    const { onProber, onFailed } = this.#observer;
    oldest.probe(this.#hasProbed).catch((error: Error) => onFailed(oldest, error));
    this.#hasProbed = true;
    onProber(oldest);
  }
}
