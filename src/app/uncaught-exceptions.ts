import { onFault, reportFault } from "@sluice/client/internal/observability/faults";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";

/**
 * Uncaught exceptions within 60 s. Past it the process drains and exits with 1; with --workers the
 * primary replaces it.
 */
const MAX_UNCAUGHT_EXCEPTIONS = 10;
const UNCAUGHT_WINDOW_MS = 60_000;

/**
 * Internal errors that are logged in a minute. Past it they are only counted, and the next line
 * reports their number as `unlogged`.
 */
const MAX_LOGGED_FAULTS = 60;
const LOGGED_FAULTS_WINDOW_MS = 60_000;

/**
 * Counts every fault of this process and logs it with its stack, up to a limit. `unlogged` counts
 * the faults left out since the last line. Call the returned function to stop. `now`: milliseconds.
 */
export function observeFaults(
  logger: Pick<Logger, "error">,
  metrics: Pick<Metrics, "internalError">,
  now: () => number = () => performance.now(),
): () => void {
  let windowStartMs = Number.NEGATIVE_INFINITY;
  let logged = 0;
  let unlogged = 0;
  return onFault((where, error) => {
    metrics.internalError(where);
    const nowMs = now();
    if (nowMs - windowStartMs >= LOGGED_FAULTS_WINDOW_MS) {
      windowStartMs = nowMs;
      logged = 0;
    }
    if (logged >= MAX_LOGGED_FAULTS) {
      unlogged += 1;
      return;
    }
    logged += 1;
    const missing = unlogged === 0 ? {} : { unlogged };
    unlogged = 0;
    logger.error({ where, error, ...missing }, "internal error: what it happened in was ended");
  });
}

/**
 * Reports uncaught exceptions and rejections, and keeps the process alive
 * (docs/decisions/0033-internal-errors.md). Calls `end` once if they keep coming.
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
