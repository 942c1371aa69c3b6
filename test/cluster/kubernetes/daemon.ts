import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, readFileSync } from "node:fs";
import path from "node:path";

export interface Daemon {
  readonly name: string;
  readonly pid: number;
  /** Throws with the end of its log when the process has ended. */
  check(): void;
  /** Starts it again, with the same arguments, once it was stopped. */
  start(): void;
  /** SIGTERM, and SIGKILL when it takes longer than 15 s. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** A program of the cluster, with low priority; its output goes to `NAME.log` in `folder`. */
export function startDaemon(
  name: string,
  program: string,
  args: readonly string[],
  folder: string,
  env: Readonly<Record<string, string>> = {},
): Daemon {
  const logFile = path.join(folder, `${name}.log`);
  const log = openSync(logFile, "a");
  const spawnChild = (): ChildProcess =>
    spawn("nice", ["-n", "10", program, ...args], {
      stdio: ["ignore", log, log],
      env: { ...process.env, ...env },
    });
  let child = spawnChild();
  const hasEnded = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    name,
    get pid() {
      return child.pid ?? 0;
    },
    check: () => {
      if (hasEnded()) throw new Error(`${name} ended: ${readFileSync(logFile, "utf8").slice(-2_000)}`);
    },
    start: () => {
      if (hasEnded()) child = spawnChild();
    },
    stop: async (signal = "SIGTERM") => {
      if (hasEnded()) return;
      const exited = once(child, "exit");
      child.kill(signal);
      const timer = setTimeout(() => child.kill("SIGKILL"), 15_000);
      await exited;
      clearTimeout(timer);
    },
  };
}
