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
