import type { Logger } from "../observability/logger.ts";
import type { GatewayContext } from "../sessions/context.ts";
import type { Listener } from "./listener.ts";
import { settlesWithin } from "./settles-within.ts";

/** After the end of the grace period, what is still queued towards clients has this long to leave. */
const FLUSH_MS = 2_000;
/** While sessions drain, those whose client is away are ended so often: a client that is alive comes back at once. */
const AWAY_MS = 2_000;
const MESSAGE = "the gateway is shutting down";

/**
 * Refuses new sessions with 503, waits for running ones within the grace period, then ends them as failures. Plain requests and
 * lingering connections have the rest of it, the latter FLUSH_MS at least.
 */
export async function drainGateway(
  {
    sessions,
    resumable,
    peers,
    timeouts,
    clock,
    logger,
  }: Pick<GatewayContext, "sessions" | "resumable" | "peers" | "timeouts" | "clock" | "logger">,
  listener: FinishingListener & Pick<Listener, "drain">,
): Promise<void> {
  const startedMs = clock.now();
  listener.drain();
  const emptied = sessions.drain();
  if (sessions.size > 0) logger.info({ sessions: sessions.size }, "draining sessions");
  // Through another replica, or a successor, a client comes back, and has its whole window to do so.
  const endsAway = peers === undefined && resumable?.returnsElsewhere !== true;
  const timer = setInterval(() => endsAway && resumable?.expireDetached(MESSAGE), AWAY_MS);
  if (!(await settlesWithin(emptied, timeouts.shutdownGracePeriodMs))) {
    logger.warn({ sessions: sessions.size }, "the grace period is over, ending the remaining sessions");
    sessions.endAll(MESSAGE);
    // A resumption would not find this process any more.
    resumable?.expireDetached(MESSAGE);
  }
  const leftMs = (): number => Math.max(0, timeouts.shutdownGracePeriodMs - (clock.now() - startedMs));
  await finishRequests(listener, leftMs(), logger);
  // Sessions that are over may hold their last bytes for a client that comes back; `timer` ends that, too.
  await settlesWithin(clock.whenEmpty(), Math.max(FLUSH_MS, leftMs()));
  clearInterval(timer);
}

/** What takes no more connections, and waits for what it has. */
export type FinishingListener = Pick<
  Listener,
  "plainRequests" | "unusedConnections" | "stopAccepting" | "flushed"
>;

/** Accepts no more; waits for first requests of new connections, for plain requests and their answers. The caller cuts what is left. */
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
