import { constants } from "node:os";

/** npm forwards signals that the terminal sent to the whole group, so one Ctrl-C may arrive twice. */
const SAME_CTRL_C_MS = 500;

/** Waits for the first of several signals. Listens until `release`. */
export class TerminationSignal {
  readonly came: Promise<NodeJS.Signals>;
  readonly #signals: readonly NodeJS.Signals[];
  #resolve: (signal: NodeJS.Signals) => void = () => {};
  #hasCome = false;

  constructor(signals: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT", "SIGHUP"]) {
    this.#signals = signals;
    this.came = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    for (const name of signals) process.on(name, this.#onSignal);
  }

  /**
   * After a signal, a repeated Ctrl-C or SIGHUP does not kill the process, which is about to exit.
   */
  release(): void {
    if (this.#hasCome) setTimeout(() => this.#off(this.#signals), SAME_CTRL_C_MS).unref();
    else this.#off(this.#signals);
  }

  /** A second signal ends the process at once, except for a repeated Ctrl-C or SIGHUP. */
  readonly #onSignal = (signal: NodeJS.Signals): void => {
    this.#hasCome = true;
    this.#resolve(signal);
    this.#off(this.#signals.filter((name) => name !== "SIGHUP" && name !== "SIGINT"));
    setTimeout(() => this.#off(["SIGINT"]), SAME_CTRL_C_MS).unref();
  };

  #off(signals: readonly NodeJS.Signals[]): void {
    for (const name of signals) process.off(name, this.#onSignal);
  }
}

/** Runs `use` with the first SIGTERM, SIGINT or SIGHUP, and stops listening afterwards. */
export async function withTerminationSignal<T>(
  use: (terminated: Promise<NodeJS.Signals>) => Promise<T>,
): Promise<T> {
  const signal = new TerminationSignal();
  try {
    return await use(signal.came);
  } finally {
    signal.release();
  }
}

/**
 * Ends this process by the signal, without waiting for reads that hang. A container's process 1
 * ignores the signal, so it exits with the same status.
 */
export function endBySignal(signal: NodeJS.Signals): never {
  process.emit("exit", 128 + constants.signals[signal]);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  process.exit(128 + constants.signals[signal]);
}
