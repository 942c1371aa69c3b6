import { onFault, reportFault } from "../observability/faults.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";

/** So many uncaught exceptions within the window below end the process, in order. */
export const MAX_UNCAUGHT_EXCEPTIONS = 10;
export const UNCAUGHT_WINDOW_MS = 60_000;

/** Logs every fault of this process, with its stack, and counts it. The returned function ends that. */
export function observeFaults(logger: Logger, metrics?: Pick<Metrics, "internalError">): () => void {
  return onFault((where, error) => {
    metrics?.internalError(where);
    logger.error({ where, error }, "internal error: what it happened in was ended");
  });
}

/**
 * What becomes of exceptions and rejections that nothing has caught, to be called when the gateway serves: they are reported, and the process goes
 * on, for what failed was one turn of the event loop (decision 0033). A process that fails again and again is shut down by `end`, once.
 */
export function surviveUncaughtExceptions(
  end: () => void,
  now: () => number = () => performance.now(),
): void {
  const timesMs: number[] = [];
  let isEnding = false;
  process.on("uncaughtException", (error) => {
    reportFault("process", error);
    const nowMs = now();
    timesMs.push(nowMs);
    if (timesMs.length > MAX_UNCAUGHT_EXCEPTIONS) timesMs.shift();
    const isTooMany =
      timesMs.length === MAX_UNCAUGHT_EXCEPTIONS && nowMs - (timesMs[0] ?? 0) < UNCAUGHT_WINDOW_MS;
    if (!isTooMany || isEnding) return;
    isEnding = true;
    end();
  });
}
