import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Target } from "@sluice/client";
import { Generator } from "./generator.ts";
import type { LoadPart, LoadPlan, LoadShare } from "./load-plan.ts";
import { LoadCollector, type LoadReport, partsOf } from "./load-report.ts";
import type { Interval } from "./recorder.ts";

/** The milliseconds between the last process' readiness and the start of the run. */
const LEAD_MS = 100;

/**
 * Messages to a generator process. `target` describes the server and may contain secrets, so it is
 * never an argument.
 */
type ToGenerator<T> =
  | { readonly type: "run"; readonly plan: LoadPlan; readonly share: LoadShare; readonly target: T }
  | { readonly type: "stop" };

/** Messages from a generator process. */
type FromGenerator = { readonly type: "ready" } | { readonly type: "interval"; readonly interval: Interval };

interface RunOptions<T> {
  readonly plan: LoadPlan;
  readonly processes: number;
  /** Other programs run the other parts, with as many processes each. */
  readonly part: LoadPart;
  /**
   * Milliseconds since 1970, the same for all parts. If absent or in the past, the run starts once
   * the processes are ready.
   */
  readonly startAtMs?: number | undefined;
  readonly target: T;
  /** Starts one generator process, with a channel for messages. */
  readonly start: () => ChildProcess;
  /** Resolves when the run should end early. */
  readonly interrupted: Promise<unknown>;
  readonly onProgress?: (collector: LoadCollector) => void;
}

/**
 * Runs the plan in separate processes, so that this one does not distort the measurement, and
 * merges their reports.
 */
export async function runInProcesses<T>(options: RunOptions<T>): Promise<LoadReport> {
  const { plan, processes, part, target, start, interrupted, onProgress } = options;
  let wasInterrupted = false;
  const children = Array.from({ length: processes }, start);
  await Promise.all(children.map(readyOrDead));
  const startAtMs = Math.max(Date.now() + LEAD_MS, options.startAtMs ?? 0);
  const collector = new LoadCollector(plan, processes, startAtMs, partsOf(part));
  void interrupted.then(() => {
    wasInterrupted = true;
    for (const child of children) tell(child, { type: "stop" });
  });
  await Promise.all(
    children.map((child, index) => {
      child.on("message", (message: FromGenerator) => {
        if (message.type !== "interval") return;
        collector.add(message.interval);
        onProgress?.(collector);
      });
      const share = { index: part.index * processes + index, processes: part.of * processes, startAtMs };
      tell(child, { type: "run", plan, share, target });
      return exitOf(child).then((how) => {
        if (how !== undefined) collector.addDeath(index, how);
      });
    }),
  );
  return collector.report(wasInterrupted);

  function tell(child: ChildProcess, message: ToGenerator<T>): void {
    // The exit event counts a process that has already died.
    if (child.connected) child.send(message, () => {});
  }
}

/** Resolves when the process waits for its plan. */
function readyOrDead(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once("message", () => resolve());
    child.once("exit", () => resolve());
  });
}

/** How the process died; undefined if it ended properly. */
async function exitOf(child: ChildProcess): Promise<string | undefined> {
  if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  return child.exitCode === 0 ? undefined : (child.signalCode ?? `exit code ${child.exitCode}`);
}

/**
 * A generator process: receives its orders from the parent, runs them, and ends. Resolves when
 * everything was reported.
 */
export function serveGenerator<T>(openTarget: (target: T) => Promise<Target>): Promise<void> {
  // A terminal sends Ctrl-C to the whole process group; the parent decides when to stop.
  process.on("SIGINT", () => {});
  const onDisconnect = (): void => process.exit(1);
  process.once("disconnect", onDisconnect);
  let generator: Generator | undefined;
  let isStopped = false;
  return new Promise((resolve, reject) => {
    const run = async ({ plan, share, target }: Extract<ToGenerator<T>, { type: "run" }>): Promise<void> => {
      generator = new Generator(plan, share, await openTarget(target), (interval) => {
        process.send?.({ type: "interval", interval } satisfies FromGenerator);
      });
      if (isStopped) generator.stop();
      await generator.run();
      process.off("disconnect", onDisconnect);
    };
    process.send?.({ type: "ready" } satisfies FromGenerator);
    process.on("message", (message: ToGenerator<T>) => {
      if (message.type === "run") {
        void run(message).then(resolve, reject);
        return;
      }
      isStopped = true;
      generator?.stop();
    });
  });
}
