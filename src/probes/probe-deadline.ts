import { DeadlineError, ExchangeError, type WireFacts } from "./probe-result.ts";
import { ProbeSocket, type SocketTarget } from "./probe-socket.ts";

/** Why a probe must stop: its time limit, or cancellation. */
type DeadlineReason = "deadline" | "cancelled";

/** Node treats a longer timer as 1 ms. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** One time limit over everything a probe does: lookup, dial, redirects, headers and body. */
export class ProbeDeadline {
  readonly #endMs: number;
  readonly #cancellation: Cancellation | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #listeners = new Set<() => void>();
  #reason: DeadlineReason | undefined;
  #isEnded = false;

  constructor(timeoutMs: number, cancellation?: Cancellation) {
    this.#endMs = performance.now() + timeoutMs;
    this.#cancellation = cancellation;
    // If this process was late, answers may already wait in the kernel: timers run before sockets
    // are read, immediates after.
    this.#timer = setTimeout(
      () => setImmediate(() => this.#finish("deadline")),
      Math.min(timeoutMs, MAX_TIMER_MS),
    );
    cancellation?.add(this);
  }

  /** Cancels the probe. */
  cancel(): void {
    this.#finish("cancelled");
  }

  /** Undefined while time is left. */
  get reason(): DeadlineReason | undefined {
    return this.#reason;
  }

  get remainingMs(): number {
    return this.#reason === undefined ? Math.max(0, this.#endMs - performance.now()) : 0;
  }

  /** Calls the listener once when the time is over, never synchronously. The returned function removes it. */
  onOver(listener: () => void): () => void {
    if (this.#reason !== undefined) queueMicrotask(listener);
    else this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves after the delay, or when the time is over. */
  sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const forget = this.onOver(() => {
        clearTimeout(timer);
        resolve();
      });
      const timer = setTimeout(() => {
        forget();
        resolve();
      }, milliseconds);
    });
  }

  /** The probe has ended; clears the timer. */
  end(): void {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    this.#cancellation?.delete(this);
    this.#listeners.clear();
  }

  #finish(reason: DeadlineReason): void {
    if (this.#isEnded) return;
    this.#reason = reason;
    const listeners = [...this.#listeners];
    this.end();
    for (const listener of listeners) listener();
  }
}

/**
 * Returns a connected socket; the caller owns it and must call `hear` synchronously. Rejects with
 * ExchangeError or DeadlineError and then leaves nothing open.
 */
export function openSocket(target: SocketTarget, deadline: ProbeDeadline): Promise<ProbeSocket> {
  const { port } = target;
  if (deadline.reason !== undefined) return Promise.reject(new DeadlineError());
  // Node throws for such a port; the text is from Go's dialler.
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    return Promise.reject(new ExchangeError(`dial tcp: address ${port}: invalid port`));
  }
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      forgetDeadline();
      socket.destroy();
      reject(error);
    };
    const socket = new ProbeSocket(target, {
      onOpen: () => {
        forgetDeadline();
        resolve(socket);
      },
      onData: () => {},
      onEnd: () => fail(new ExchangeError("EOF")),
      onError: (error) => fail(new ExchangeError(socket.textOf(error), { cause: error })),
    });
    const forgetDeadline = deadline.onOver(() => fail(new DeadlineError()));
  });
}

/** Notes the peer's TLS certificate. */
export function noteCertificate(socket: ProbeSocket, wire: WireFacts): void {
  const { certificate } = socket;
  if (certificate !== undefined) wire.certificate = certificate;
}

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
