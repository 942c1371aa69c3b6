import { setTimeout as delay } from "node:timers/promises";

/**
 * Calls `attempt` until it returns a value other than `undefined` or `false`, and returns that
 * value. For other processes' states, which send no event. `what` may be a function, to show the
 * last state. An attempt that throws counts as "not yet"; its error becomes the final error's
 * cause.
 */
export async function eventually<T>(
  what: string | (() => string),
  attempt: () => T | Promise<T>,
  { timeoutMs = 30_000, intervalMs = 20 } = {},
): Promise<Exclude<T, undefined | false>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    let cause: unknown;
    try {
      const result = await attempt();
      if (result !== undefined && result !== false) return result as Exclude<T, undefined | false>;
    } catch (error) {
      cause = error;
    }
    if (performance.now() > deadline) {
      throw new Error(`not within ${timeoutMs} ms: ${typeof what === "string" ? what : what()}`, { cause });
    }
    await delay(intervalMs);
  }
}
