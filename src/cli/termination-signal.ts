import { constants } from "node:os";

/** npm forwards signals that the terminal sent to the whole group, so one Ctrl-C may arrive twice. */
const SAME_CTRL_C_MS = 500;

/**
 * Resolves at the first signal. A second one ends the process at once, except for a repeated Ctrl-C
 * or SIGHUP.
 */
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
 * Ends this process by the signal, without waiting for reads that hang. A container's process 1
 * ignores the signal, so it exits with the same status.
 */
export function endBySignal(signal: NodeJS.Signals): never {
  process.emit("exit", 128 + constants.signals[signal]);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  process.exit(128 + constants.signals[signal]);
}
