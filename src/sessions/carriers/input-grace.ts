import type { Duplex } from "node:stream";
import type { SessionClock } from "@sluice/client/internal/net/session-clock";

/**
 * How long a command or a pod's ports may read input after a proper close, which ends input before
 * v5. Past it the node's connection is closed.
 */
export const INPUT_GRACE_MS = 10_000;

/**
 * Calls `leave` if the node has not ended its connection in time. Meanwhile its output is read and
 * dropped.
 */
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
