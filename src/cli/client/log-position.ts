import { isBefore, type LogTime } from "@sluice/client/internal/api/log-time";

/**
 * The place in a log up to which lines were printed. It is read again from the newest line's second
 * (Kubernetes passes on whole seconds), and repeats the lines of that second in order.
 */
export class LogPosition {
  #newest: LogTime | undefined;
  #linesOfSecond = 0;
  #toSkip = 0;

  /** The next line's time: false if the line was printed before the log was read again. */
  isNew(time: LogTime): boolean {
    const newest = this.#newest;
    if (this.#toSkip > 0 && newest !== undefined && !isBefore(newest, time)) {
      this.#toSkip -= 1;
      return false;
    }
    this.#toSkip = 0;
    if (newest === undefined || time.seconds > newest.seconds) this.#linesOfSecond = 1;
    else if (time.seconds === newest.seconds) this.#linesOfSecond += 1;
    if (newest === undefined || isBefore(newest, time)) this.#newest = time;
    return true;
  }

  /** The time to read again from, as `sinceTime`; undefined: from where it began. */
  readAgain(): string | undefined {
    if (this.#newest === undefined) return undefined;
    this.#toSkip = this.#linesOfSecond;
    return new Date(this.#newest.seconds * 1_000).toISOString().replace(".000Z", "Z");
  }
}
