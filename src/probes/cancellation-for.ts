/** Something that can be cancelled. */
export interface Cancellable {
  cancel(): void;
}

/** Cancels its members when the signal aborts. Cancels a member that is added too late at once. */
export interface Cancellation {
  add(member: Cancellable): void;
  delete(member: Cancellable): void;
}

const running = new WeakMap<AbortSignal, SignalledRuns>();

/**
 * Members that are cancelled when a signal aborts. A worker has one signal for all its probes; one
 * listener is cheaper than adding and removing one per probe.
 */
export function cancellationFor(signal: AbortSignal): Cancellation {
  const known = running.get(signal);
  if (known !== undefined) return known;
  const runs = new SignalledRuns(signal);
  running.set(signal, runs);
  return runs;
}

class SignalledRuns implements Cancellation {
  readonly #signal: AbortSignal;
  readonly #members = new Set<Cancellable>();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", () => this.#cancelAll(), { once: true });
  }

  add(member: Cancellable): void {
    if (this.#signal.aborted) member.cancel();
    else this.#members.add(member);
  }

  delete(member: Cancellable): void {
    this.#members.delete(member);
  }

  #cancelAll(): void {
    for (const member of [...this.#members]) member.cancel();
    this.#members.clear();
  }
}

/**
 * A run with its own cancellation. An AbortSignal per run would cost more than the rest of its
 * bookkeeping.
 */
export class CancellableRun implements Cancellation, Cancellable {
  #member: Cancellable | undefined;
  #isCancelled = false;

  add(member: Cancellable): void {
    if (this.#isCancelled) member.cancel();
    else this.#member = member;
  }

  delete(member: Cancellable): void {
    if (this.#member === member) this.#member = undefined;
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#member?.cancel();
  }
}
