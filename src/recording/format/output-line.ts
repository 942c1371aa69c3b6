/** Bytes that are escaped at once. Each may become six, for which the line must have room. */
const SLICE_BYTES = 8 * 1024;
const MAX_ESCAPE_BYTES = 6;
/** `"]` and the line's end. */
const END = Buffer.from('"]\n');
const BACKSLASH = 0x5c;
const HEX = Buffer.from("0123456789abcdef");
const PLAIN = 0;
const LONG = 1;
/** For each byte: PLAIN, LONG for \u00XX, or what follows the backslash. As JSON.stringify escapes. */
const ESCAPED = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0x80) return PLAIN;
  const [, second = "", third] = JSON.stringify(String.fromCharCode(byte)).slice(1, -1);
  return third !== undefined ? LONG : second === "" ? PLAIN : second.charCodeAt(0);
});

/**
 * An event line whose data is UTF-8 that arrives in parts. Writes bytes, because a string would
 * cost more.
 */
export class OutputLine {
  #line: Buffer;
  #used: number;

  /** `start` is the line up to its data. `bytes` is about how much data follows. */
  constructor(start: string, bytes: number) {
    const slice = Math.min(bytes, SLICE_BYTES) * MAX_ESCAPE_BYTES;
    this.#line = Buffer.allocUnsafe(start.length + bytes + (bytes >> 3) + slice + END.byteLength);
    this.#used = this.#line.write(start, "latin1");
  }

  /** Copies a part, which must be valid UTF-8. */
  add(part: Uint8Array): void {
    for (let from = 0; from < part.byteLength; from += SLICE_BYTES) {
      const slice = part.subarray(from, from + SLICE_BYTES);
      this.#ensure(slice.byteLength * MAX_ESCAPE_BYTES + END.byteLength);
      this.#used = writeEscaped(slice, this.#line, this.#used);
    }
  }

  /** Returns the whole line, with its end. */
  end(): Buffer {
    this.#ensure(END.byteLength);
    this.#used += END.copy(this.#line, this.#used);
    return this.#line.subarray(0, this.#used);
  }

  #ensure(bytes: number): void {
    const needed = this.#used + bytes;
    if (needed <= this.#line.byteLength) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#line.byteLength * 2));
    this.#line.copy(larger, 0, 0, this.#used);
    this.#line = larger;
  }
}

/**
 * Writes `from` to `to` as the inside of a JSON string, and returns where it ends. Copies four
 * bytes at once, then goes back to the first of them that needs an escape.
 */
function writeEscaped(from: Uint8Array, to: Uint8Array, start: number): number {
  const source = new DataView(from.buffer, from.byteOffset, from.byteLength);
  const target = new DataView(to.buffer, to.byteOffset, to.byteLength);
  const length = from.byteLength;
  let [at, end] = [0, start];
  while (at + 4 <= length) {
    const four = source.getInt32(at, true);
    target.setInt32(end, four, true);
    const plain = plainBytes(four);
    at += plain;
    end += plain;
    if (plain < 4) end = writeByte(from[at++] as number, to, end);
  }
  while (at < length) end = writeByte(from[at++] as number, to, end);
  return end;
}

/** How many of the four bytes come before the first control character, quote or backslash. */
function plainBytes(four: number): number {
  const quote = four ^ 0x22222222;
  const backslash = four ^ 0x5c5c5c5c;
  // The highest bit of a byte is set if subtracting made it negative: it was too small, or it was equal.
  const control = (four - 0x20202020) & ~four;
  const equal = ((quote - 0x01010101) & ~quote) | ((backslash - 0x01010101) & ~backslash);
  const marks = (control | equal) & 0x80808080;
  return marks === 0 ? 4 : (31 - Math.clz32(marks & -marks)) >> 3;
}

function writeByte(byte: number, to: Uint8Array, end: number): number {
  const escaped = ESCAPED[byte] as number;
  if (escaped === PLAIN) {
    to[end] = byte;
    return end + 1;
  }
  to[end] = BACKSLASH;
  if (escaped !== LONG) {
    to[end + 1] = escaped;
    return end + 2;
  }
  to[end + 1] = 0x75; // u
  to[end + 2] = to[end + 3] = 0x30; // 0
  to[end + 4] = HEX[byte >> 4] as number;
  to[end + 5] = HEX[byte & 15] as number;
  return end + 6;
}
