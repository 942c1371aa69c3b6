import type { Logger } from "../observability/logger.ts";
import type { ResumableRunContext } from "../sessions/context.ts";
import { SHUTTING_DOWN } from "../sessions/lifecycle.ts";
import type { Listener } from "./listener.ts";
import { settlesWithin } from "./unused-connections.ts";

/** After the grace period, bytes queued for clients have this long to leave. */
const FLUSH_MS = 2_000;
/** While sessions drain, detached ones are ended at this interval: a living client reconnects at once. */
const AWAY_MS = 2_000;

/**
 * Refuses new sessions with 503, waits for running ones within the grace period, then ends them as
 * failures. Plain requests and lingering connections get the time left, the latter at least FLUSH_MS.
 */
export async function drainGateway(
  {
    sessions,
    resumable,
    peers,
    timeouts,
    clock,
    logger,
  }: Pick<ResumableRunContext, "sessions" | "resumable" | "peers" | "timeouts" | "clock" | "logger">,
  listener: FinishingListener & Pick<Listener, "drain">,
): Promise<void> {
  const startedMs = clock.now();
  listener.drain();
  clock.hurry();
  const emptied = sessions.drain();
  if (sessions.size > 0) logger.info({ sessions: sessions.size }, "draining sessions");
  // The client can still return through another replica or a successor, so the session keeps its
  // whole window.
  const endsAway = peers === undefined && resumable?.returnsElsewhere !== true;
  const timer = setInterval(() => endsAway && resumable?.expireDetached(SHUTTING_DOWN), AWAY_MS);
  if (!(await settlesWithin(emptied, timeouts.shutdownGracePeriodMs))) {
    logger.warn({ sessions: sessions.size }, "the grace period is over, ending the remaining sessions");
    await sessions.endAll(SHUTTING_DOWN);
    // No client can resume here after the process has ended.
    resumable?.expireDetached(SHUTTING_DOWN);
  }
  const leftMs = (): number => Math.max(0, timeouts.shutdownGracePeriodMs - (clock.now() - startedMs));
  await finishRequests(listener, leftMs(), logger);
  // Finished sessions may keep their last bytes for a client that returns; `timer` ends those
  // sessions, too.
  await settlesWithin(clock.whenEmpty(), Math.max(FLUSH_MS, leftMs()));
  clearInterval(timer);
}

/** A listener that stops accepting and waits for its current work. */
type FinishingListener = Pick<Listener, "plainRequests" | "unusedConnections" | "stopAccepting" | "flushed">;

/**
 * Stops accepting; waits for new connections' first requests, then for plain requests and their
 * answers. The caller destroys the rest.
 */
export async function finishRequests(
  { plainRequests, unusedConnections, stopAccepting, flushed }: FinishingListener,
  timeoutMs: number,
  logger: Logger,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs;
  await stopAccepting();
  await unusedConnections.whenUsed(deadlineMs - performance.now());
  await plainRequests.finish(Math.max(0, deadlineMs - performance.now()));
  if (plainRequests.inFlight > 0) {
    logger.warn(
      { requests: plainRequests.inFlight },
      "the grace period is over, cutting the remaining requests",
    );
  }
  await flushed(FLUSH_MS);
}
