import { constants } from "node:os";

/** npm passes on what the terminal has sent the whole group already: one Ctrl-C may arrive twice. */
const SAME_CTRL_C_MS = 500;

/** Resolves at the first of them. A second one ends the process at once, unless it is the same Ctrl-C or only the terminal is gone. */
export function terminationSignal(
  signals: readonly NodeJS.Signals[] = ["SIGTERM", "SIGINT", "SIGHUP"],
): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    const onSignal = (signal: NodeJS.Signals): void => {
      resolve(signal);
      for (const name of signals) if (name !== "SIGHUP" && name !== "SIGINT") process.off(name, onSignal);
      setTimeout(() => process.off("SIGINT", onSignal), SAME_CTRL_C_MS).unref();
    };
    for (const name of signals) process.on(name, onSignal);
  });
}

/**
 * Ends this process by the signal that it got, as one that does not handle it. An exit would first wait for reads that hang. The
 * first process of a container is spared by the signal, and exits with the same status.
 */
export function endBySignal(signal: NodeJS.Signals): never {
  process.emit("exit", 128 + constants.signals[signal]);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  process.exit(128 + constants.signals[signal]);
}
