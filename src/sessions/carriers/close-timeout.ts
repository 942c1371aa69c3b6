/** The runtime must end the session this soon after its status and its last output; containerd does so at once. */
const AFTER_STATUS_MS = 10_000;

/** Watches for an upstream that has said how its command ended, and then does not end the session. */
export class CloseTimeout {
  #sinceMs = Number.POSITIVE_INFINITY;
  #seenBytes = 0;

  statusCame(nowMs: number): void {
    this.#sinceMs = nowMs;
  }

  /** To be asked at every tick. `bytes`: of output so far. `isHeldUp`: a slow client keeps us from reading, so nothing can come. */
  isDue(nowMs: number, bytes: number, isHeldUp: boolean): boolean {
    if (!Number.isFinite(this.#sinceMs)) return false;
    if (bytes !== this.#seenBytes || isHeldUp) this.#sinceMs = nowMs;
    this.#seenBytes = bytes;
    return nowMs - this.#sinceMs >= AFTER_STATUS_MS;
  }
}
