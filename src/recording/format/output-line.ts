import { type Memory, SpareMemories } from "@sluice/client/internal/net/freed-memory";

/** Bytes that are escaped at once. Each may become six, for which the line must have room. */
const SLICE_BYTES = 8 * 1024;
const MAX_ESCAPE_BYTES = 6;
/** `"]` and the line's end. */
const END = Buffer.from('"]\n');
/** Bytes after an escape in which others are likely. */
const ESCAPES_WITHIN = 48;
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

/** Room for a long line: what is written at once (WRITE_BYTES), with some escapes. */
const MEMORY_BYTES = 256 * 1024;
/** Lines of fewer bytes get memory of their own size. */
const LONG_BYTES = 4 * 1024;
const spare = new SpareMemories(MEMORY_BYTES);

/**
 * An event line whose data is UTF-8 that arrives in parts. Writes bytes, because a string would
 * cost more. Long lines use the memory of earlier ones.
 */
export class OutputLine {
  #line: Buffer;
  #used: number;
  #lent: Memory | undefined;

  /** `start` is the line up to its data. `bytes` is about how much data follows. */
  constructor(start: string, bytes: number) {
    if (bytes >= LONG_BYTES && bytes < MEMORY_BYTES / 2) this.#line = this.#lent = spare.take();
    else {
      const slice = Math.min(bytes, SLICE_BYTES) * MAX_ESCAPE_BYTES;
      this.#line = Buffer.allocUnsafe(start.length + bytes + (bytes >> 3) + slice + END.byteLength);
    }
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

  /** Returns the whole line, with its end. It stays as it is until `free`. */
  end(): Buffer {
    this.#ensure(END.byteLength);
    this.#used += END.copy(this.#line, this.#used);
    return this.#line.subarray(0, this.#used);
  }

  /** Call once, when the line is not read any more. */
  free(): void {
    if (this.#lent !== undefined) spare.give(this.#lent);
    this.#lent = undefined;
  }

  #ensure(bytes: number): void {
    const needed = this.#used + bytes;
    if (needed <= this.#line.byteLength) return;
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#line.byteLength * 2));
    this.#line.copy(larger, 0, 0, this.#used);
    this.free();
    this.#line = larger;
  }
}

/**
 * Writes `from` to `to` as the inside of a JSON string, and returns where it ends. Copies sixteen
 * bytes at once; around escapes four, then goes back to the first that needs one.
 */
function writeEscaped(from: Uint8Array, to: Uint8Array, start: number): number {
  const source = new DataView(from.buffer, from.byteOffset, from.byteLength);
  const target = new DataView(to.buffer, to.byteOffset, to.byteLength);
  const length = from.byteLength;
  let [at, end] = [0, start];
  while (at + 16 <= length) {
    const one = source.getInt32(at, true);
    const two = source.getInt32(at + 4, true);
    const three = source.getInt32(at + 8, true);
    const four = source.getInt32(at + 12, true);
    if ((marksOf(one) | marksOf(two) | marksOf(three) | marksOf(four)) === 0) {
      target.setInt32(end, one, true);
      target.setInt32(end + 4, two, true);
      target.setInt32(end + 8, three, true);
      target.setInt32(end + 12, four, true);
      at += 16;
      end += 16;
      continue;
    }
    // Where there is one escape, others follow.
    for (const until = Math.min(at + ESCAPES_WITHIN, length - 3); at < until; ) {
      const some = source.getInt32(at, true);
      target.setInt32(end, some, true);
      const plain = plainBytes(some);
      at += plain;
      end += plain;
      if (plain < 4) end = writeByte(from[at++] as number, to, end);
    }
  }
  while (at < length) end = writeByte(from[at++] as number, to, end);
  return end;
}

/**
 * Marks control characters, quotes and backslashes among four bytes, by their highest bits. Bytes
 * that follow a marked one may be marked, too.
 */
function marksOf(four: number): number {
  // The highest bit of a byte is set if subtracting made it negative: it was too small. Exchanging
  // 0x20 and 0x22 puts the quote next to the control characters.
  const control = four ^ 0x02020202;
  const backslash = four ^ 0x5c5c5c5c;
  return (((control - 0x21212121) & ~control) | ((backslash - 0x01010101) & ~backslash)) & 0x80808080;
}

/** How many of the four bytes come before the first control character, quote or backslash. */
function plainBytes(four: number): number {
  const marks = marksOf(four);
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
