/** A process that served for so long did not die of its start. */
export const SETTLED_MS = 60_000;
const FIRST_MS = 100;
const MAX_MS = 30_000;

/**
 * How long to wait before a worker is started again: at once after a long life, then 100 ms doubled up to 30 s while they keep dying, so
 * that a crash in a loop costs neither the machine nor the log.
 */
export class RestartDelay {
  #shortLives = 0;

  /** `livedMs`: since it was ready; 0 for one that never was. */
  nextBackoff(livedMs: number): number {
    if (livedMs >= SETTLED_MS) this.#shortLives = 0;
    const delayMs = this.#shortLives === 0 ? 0 : FIRST_MS * 2 ** (this.#shortLives - 1);
    this.#shortLives += 1;
    return Math.min(MAX_MS, delayMs);
  }
}
