import { isLasting, keyOfFinding, type ProbeUpdate } from "../../probes/probe-update.ts";

/** A worker, as shared probing sees it. */
export interface Prober {
  readonly isTaking: boolean;
  /** Milliseconds of a monotonic clock; undefined while the worker does not serve. */
  readonly readySinceMs: number | undefined;
  learn(findings: readonly ProbeUpdate[]): void;
  /** Starts probing; `isSuccessor`: after another worker. Rejects if it cannot. */
  probe(isSuccessor: boolean): Promise<unknown>;
}

/** Learns which worker probes. */
interface ProbingObserver<Worker extends Prober> {
  /** Another worker probes; undefined while none is chosen. */
  onProber(worker: Worker | undefined): void;
  /** The chosen worker could not start to probe, or died before it did. */
  onFailed(worker: Worker, error: Error): void;
}

/**
 * Lets one worker probe for all: the one that has served longest, until it dies. The others get its
 * results, also if they start later.
 */
export class SharedProbing<Worker extends Prober> {
  readonly #workers: () => readonly Worker[];
  readonly #observer: ProbingObserver<Worker>;
  /** The latest result to keep for each pod and each dead upstream. */
  readonly #latest = new Map<string, ProbeUpdate>();
  #prober: Worker | undefined;
  #hasProbed = false;

  constructor(workers: () => readonly Worker[], observer: ProbingObserver<Worker>) {
    this.#workers = workers;
    this.#observer = observer;
  }

  /** The worker serves: it receives all known results, and becomes the prober if there is none. */
  ready(worker: Worker): void {
    if (this.#latest.size > 0) worker.learn([...this.#latest.values()]);
    this.#nameProber();
  }

  /** Ignores results from any worker but the prober. */
  found(worker: Worker, findings: readonly ProbeUpdate[]): void {
    if (worker !== this.#prober) return;
    for (const finding of findings) {
      const key = keyOfFinding(finding);
      if (isLasting(finding)) this.#latest.set(key, finding);
      else this.#latest.delete(key);
    }
    for (const other of this.#workers()) if (other !== worker && other.isTaking) other.learn(findings);
  }

  /** `isExpected`: the whole gateway is stopping and needs no other prober. */
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
