import type { ChildProcess } from "node:child_process";
import { constants } from "node:os";

/** Signals the process and its descendants; the process was started as leader of its own group. */
export function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // ESRCH: all of them have ended.
  }
}

/** The exit code as a shell reports it. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  if (code !== null) return code;
  return 128 + (signal === null ? 0 : constants.signals[signal]);
}
