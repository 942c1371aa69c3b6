import type { GatewayContext } from "./context.ts";

/** After the end of the grace period, what is still queued towards clients has this long to leave. */
const FLUSH_MS = 2_000;

/**
 * Lets running sessions finish within the grace period, while new ones are refused with 503, then ends the rest: each
 * client gets a failure in its own protocol, never a success.
 */
export async function drainSessions({ sessions, timeouts, logger }: GatewayContext): Promise<void> {
  const emptied = sessions.drain();
  if (sessions.size > 0) logger.info({ sessions: sessions.size }, "draining sessions");
  const isEmpty = await settlesWithin(emptied, timeouts.shutdownGracePeriodMs);
  if (isEmpty) return;
  logger.warn({ sessions: sessions.size }, "the grace period is over, ending the remaining sessions");
  sessions.endAll("the gateway is shutting down");
  await settlesWithin(emptied, FLUSH_MS);
}

function settlesWithin(promise: Promise<void>, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), timeoutMs);
    void promise.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
