import type { Duplex } from "node:stream";
import type { SessionClock } from "../../net/session-clock.ts";

/**
 * A client that closes properly has sent all of its input: protocols before v5 have no other end of it.
 * Its command has this long to take the input and to end, before the node's connection is.
 */
export const INPUT_GRACE_MS = 10_000;

/** Calls `leave` when the node has not ended its connection in that time. Its output is read meanwhile, and dropped. */
export function leaveBehindInput(node: Duplex, clock: SessionClock, leave: () => void): void {
  const untilMs = clock.now() + INPUT_GRACE_MS;
  const ticking = {
    tick(nowMs: number): void {
      if (nowMs < untilMs) return;
      clock.delete(ticking);
      leave();
    },
  };
  clock.add(ticking);
  node.once("close", () => clock.delete(ticking));
  node.once("end", () => {
    clock.delete(ticking);
    leave();
  });
}
