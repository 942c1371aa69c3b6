import type { Duplex } from "node:stream";
import type { SessionClock } from "@sluice/client/internal/net/session-clock";

/**
 * How long a command or a pod's ports may read input after a proper close, which ends input before
 * v5. Past it the node's connection is closed.
 */
const INPUT_GRACE_MS = 10_000;

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

/**
 * How long an upstream may take to end the session after the status; containerd ends it at once.
 * Past it the session ends by that status.
 */
const AFTER_STATUS_MS = 10_000;

/** Detects an upstream that has reported its command's status and does not end the session. */
export class CloseTimeout {
  #sinceMs = Number.POSITIVE_INFINITY;
  #seenBytes = 0;

  statusCame(nowMs: number): void {
    this.#sinceMs = nowMs;
  }

  /**
   * Call at each tick. `bytes`: the output so far. `isHeldUp`: a slow client stops the gateway from
   * reading, so the upstream is not late.
   */
  isDue(nowMs: number, bytes: number, isHeldUp: boolean): boolean {
    if (!Number.isFinite(this.#sinceMs)) return false;
    if (bytes !== this.#seenBytes || isHeldUp) this.#sinceMs = nowMs;
    this.#seenBytes = bytes;
    return nowMs - this.#sinceMs >= AFTER_STATUS_MS;
  }
}
