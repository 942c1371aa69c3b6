/** A worker that ran this long started well; its next restart is immediate. */
export const SETTLED_MS = 60_000;
const FIRST_MS = 100;
const MAX_MS = 30_000;

/**
 * The wait before a worker's restart: none after a long life, then 100 ms, doubled up to 30 s while
 * workers keep dying. A crash loop then costs little CPU and few log lines.
 */
export class RestartDelay {
  #shortLives = 0;

  /** `livedMs`: the time since the worker was ready; 0 if it never was. */
  nextBackoff(livedMs: number): number {
    if (livedMs >= SETTLED_MS) this.#shortLives = 0;
    const delayMs = this.#shortLives === 0 ? 0 : FIRST_MS * 2 ** (this.#shortLives - 1);
    this.#shortLives += 1;
    return Math.min(MAX_MS, delayMs);
  }
}
