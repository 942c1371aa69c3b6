import { type LogTime, parseLogTime } from "@sluice/client/internal/api/pod-log-options";

const LF = 0x0a;
const SPACE = 0x20;
/** RFC 3339 with nine digits and a zone has 35. */
const MAX_TIME_BYTES = 40;
/** A line of a log. Past it the line is printed in parts. */
export const MAX_LOG_LINE_BYTES: number = 1024 * 1024;

export interface LogLine {
  /** Undefined if the line does not begin with one, and for the further parts of a long line. */
  readonly time: LogTime | undefined;
  /** A further part of the line before it. */
  readonly isContinued: boolean;
  /** With its time and its line feed, which the last line may lack. */
  readonly stamped: Buffer;
  /** Without the time. */
  readonly text: Buffer;
}

/** Splits a log that was asked for with `timestamps=true` into its lines. */
export class LogLines {
  #parts: Buffer[] = [];
  #bytes = 0;
  #isInside = false;

  /** Whether the last part ended within its line. */
  get isInside(): boolean {
    return this.#isInside;
  }

  *push(chunk: Buffer): Generator<LogLine, void> {
    let from = 0;
    for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, from)) {
      yield this.#lineWith(chunk.subarray(from, at + 1));
      from = at + 1;
    }
    if (from === chunk.byteLength) return;
    const rest = chunk.subarray(from);
    if (this.#bytes + rest.byteLength > MAX_LOG_LINE_BYTES) yield this.#lineWith(rest);
    else {
      // The chunk's memory is the connection's.
      this.#parts.push(Buffer.from(rest));
      this.#bytes += rest.byteLength;
    }
  }

  /** The last line, if it has no line feed. After a cut it is not whole: leave it. */
  *end(): Generator<LogLine, void> {
    if (this.#bytes > 0) yield this.#lineWith(Buffer.alloc(0));
  }

  #lineWith(last: Buffer): LogLine {
    const stamped = this.#parts.length === 0 ? last : Buffer.concat([...this.#parts, last]);
    this.#parts = [];
    this.#bytes = 0;
    const isContinued = this.#isInside;
    this.#isInside = stamped.at(-1) !== LF;
    const space = isContinued ? -1 : stamped.subarray(0, MAX_TIME_BYTES).indexOf(SPACE);
    const time = space === -1 ? undefined : parseLogTime(stamped.toString("latin1", 0, space));
    return { time, isContinued, stamped, text: time === undefined ? stamped : stamped.subarray(space + 1) };
  }
}
