import {
  isBefore,
  type PodLogOptions,
  parseLogTime,
  withNineDigits,
} from "@sluice/client/internal/api/pod-log-options";

/**
 * The head before a line's content: `2026-01-02T03:04:05.123456789Z stdout F `. Tag P marks a part
 * of a line, F a whole line or its last part; more tags may follow after colons.
 */
export const MAX_LINE_HEAD_BYTES = 256;
const LINE_HEAD = /^(\S+) (stdout|stderr) ([PF])(?::\S*)? ?$/;

const NEWLINE = 0x0a;
const SPACE = 0x20;
const NEWLINE_BYTES: Uint8Array = Buffer.from("\n");

interface LineHead {
  readonly time: string;
  readonly stream: "stdout" | "stderr";
  readonly isPartial: boolean;
}

/** Undefined if no runtime writes such a head. `text` ends at the content or at the line's end. */
export function parseLineHead(text: string): LineHead | undefined {
  const [, time = "", stream, tag] = LINE_HEAD.exec(text) ?? [];
  if (stream === undefined) return undefined;
  return { time, stream: stream as LineHead["stream"], isPartial: tag === "P" };
}

/**
 * The end of the head at `start`: after its third blank, or at the line's end. Undefined if these
 * bytes do not contain it.
 */
export function endOfHead(bytes: Uint8Array, start: number): number | undefined {
  let blanks = 0;
  for (let index = start; index < bytes.length; index++) {
    if (bytes[index] === NEWLINE) return index;
    if (bytes[index] === SPACE && ++blanks === 3) return index + 1;
  }
  return undefined;
}

/**
 * Turns a CRI log file into log output. Passes content in parts, so lines have no limit; buffers at
 * most MAX_LINE_HEAD_BYTES of a line's head. Skips lines without a valid head.
 */
export class LogFormatter {
  readonly #options: Pick<PodLogOptions, "since" | "timestamps" | "stream">;
  #remaining: number;
  /** The beginning of a head that the next bytes complete. */
  #held: Uint8Array = new Uint8Array(0);
  #inside: "head" | "content" | "skipped" = "head";
  #isPartial = false;
  #isAtLineStart = true;

  constructor(options: Pick<PodLogOptions, "since" | "timestamps" | "stream" | "limitBytes">) {
    this.#options = options;
    this.#remaining = options.limitBytes ?? Number.POSITIVE_INFINITY;
  }

  /** The output has reached limitBytes; nothing more follows. */
  get isFull(): boolean {
    return this.#remaining === 0;
  }

  /** Reads the next bytes of the file and returns their log output. */
  push(chunk: Uint8Array): Uint8Array {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = new Uint8Array(0);
    const out: Uint8Array[] = [];
    let index = 0;
    while (index < bytes.length)
      index =
        this.#inside === "head" ? this.#readHead(bytes, index, out) : this.#readContent(bytes, index, out);
    return this.#limited(out);
  }

  /** Another file follows: an incomplete line of the previous one ends here. */
  startFile(): void {
    this.#held = new Uint8Array(0);
    this.#inside = "head";
  }

  #readHead(bytes: Uint8Array, start: number, out: Uint8Array[]): number {
    const end = endOfHead(bytes.subarray(0, start + MAX_LINE_HEAD_BYTES), start);
    if (end === undefined) {
      if (bytes.length - start < MAX_LINE_HEAD_BYTES) {
        this.#held = bytes.slice(start);
        return bytes.length;
      }
      this.#inside = "skipped";
      return start;
    }
    const head = parseLineHead(
      Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1"),
    );
    const time = head && parseLogTime(head.time);
    const { since, timestamps, stream } = this.#options;
    const isWanted =
      head !== undefined &&
      time !== undefined &&
      (since === undefined || !isBefore(time, since)) &&
      (stream === undefined || stream === head.stream);
    this.#inside = isWanted ? "content" : "skipped";
    if (isWanted) {
      this.#isPartial = head.isPartial;
      if (timestamps && this.#isAtLineStart) out.push(Buffer.from(`${withNineDigits(head.time)} `));
      this.#isAtLineStart = false;
    }
    return end;
  }

  #readContent(bytes: Uint8Array, start: number, out: Uint8Array[]): number {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline === -1 ? bytes.length : newline;
    if (this.#inside === "content") {
      if (end > start) out.push(bytes.subarray(start, end));
      if (newline !== -1 && !this.#isPartial) {
        out.push(NEWLINE_BYTES);
        this.#isAtLineStart = true;
      }
    }
    if (newline === -1) return end;
    this.#inside = "head";
    return newline + 1;
  }

  #limited(out: readonly Uint8Array[]): Uint8Array {
    const whole = Buffer.concat(out);
    if (whole.length < this.#remaining) {
      this.#remaining -= whole.length;
      return whole;
    }
    const cut = whole.subarray(0, this.#remaining);
    this.#remaining = 0;
    return cut;
  }
}
