import type { ChildProcess } from "node:child_process";
import { constants } from "node:os";

/** Sends a signal to the process and its descendants (it was started as the leader of its own group). */
export function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // ESRCH: all of them are gone already.
  }
}

/** The code that a shell would report. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  if (code !== null) return code;
  return 128 + (signal === null ? 0 : constants.signals[signal]);
}
