import { FairQueue } from "./fair-queue.ts";

/** Where a caller waits. */
interface Place {
  readonly flow: string;
  /** A flow's lanes take turns. Absent: all share one. */
  readonly lane?: string | undefined;
  /** Calls the listener when the caller is gone; at once if it already is. Absent: it stays. */
  readonly onGone?: ((listener: () => void) => void) | undefined;
}

interface SharedWork<T> {
  done: Promise<T>;
  callers: number;
  /** Set while the work waits. */
  leave: (() => void) | undefined;
}

/**
 * Work in the turns of a fair queue, which callers with equal keys share. Waiting work leaves the
 * queue with the last of its callers.
 */
export class SharedTurns<T> {
  readonly #queue: FairQueue;
  readonly #shared = new Map<string, SharedWork<T>>();
  readonly #refusal: () => Error;

  /** `refusal`: what callers get that may not wait, or waited too long. */
  constructor(options: ConstructorParameters<typeof FairQueue>[0], refusal: () => Error) {
    this.#queue = new FairQueue(options);
    this.#refusal = refusal;
  }

  /** Pieces of work that run or wait. */
  get size(): number {
    return this.#shared.size;
  }

  get waiting(): number {
    return this.#queue.waiting;
  }

  /** Resolves with the work's result; rejects with the refusal, or as the work does. */
  run(key: string, place: Place, work: () => Promise<T>): Promise<T> {
    const shared = this.#shared.get(key) ?? this.#begin(key, place, work);
    shared.callers += 1;
    if (shared.leave !== undefined) {
      place.onGone?.(() => {
        shared.callers -= 1;
        if (shared.callers > 0 || shared.leave === undefined) return;
        // A later caller must not share the refusal.
        this.#forget(key, shared);
        shared.leave();
      });
    }
    return shared.done;
  }

  #begin(key: string, { flow, lane }: Place, work: () => Promise<T>): SharedWork<T> {
    let leave: (() => void) | undefined;
    const seated = this.#queue.acquire(flow, lane, (listener) => {
      leave = listener;
    });
    const inTurn = async (): Promise<T> => {
      try {
        if (seated === false || (seated !== true && !(await seated))) throw this.#refusal();
        return await this.#seated(flow, shared, work);
      } finally {
        this.#forget(key, shared);
      }
    };
    // Known before it begins, because it may end at once.
    const shared = { callers: 0, leave } as SharedWork<T>;
    this.#shared.set(key, shared);
    shared.done = inTurn();
    return shared;
  }

  async #seated(flow: string, shared: SharedWork<T>, work: () => Promise<T>): Promise<T> {
    shared.leave = undefined;
    try {
      return await work();
    } finally {
      this.#queue.release(flow);
    }
  }

  #forget(key: string, shared: SharedWork<T>): void {
    if (this.#shared.get(key) === shared) this.#shared.delete(key);
  }
}
