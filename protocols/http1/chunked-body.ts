import { isFieldCharacter, MalformedResponse } from "./field-lines.ts";

const LF = 0x0a;
const CR = 0x0d;
const SEMICOLON = 0x3b;
// 2^52 bytes: lengths stay exact.
const MAX_SIZE_DIGITS = 13;

type Place = "size" | "padding" | "extension" | "size-end" | "data" | "data-cr" | "data-lf" | "trailers";

/** Receives the payload of a chunked body (RFC 9112 section 7.1). */
interface ChunkSink<Chunk extends Uint8Array> {
  onBody(part: Chunk): void;
}

/**
 * Reads the chunks of one body up to the last chunk's line; trailers are not part of it. Lines must
 * end in CRLF, because lenient chunk readers enabled request smuggling. Extensions are skipped.
 */
export class ChunkedBody<Chunk extends Uint8Array> {
  readonly #maxLineBytes: number;
  #place: Place = "size";
  #bytesLeft = 0;
  #digits = 0;
  #lineBytes = 0;

  constructor(maxLineBytes: number) {
    this.#maxLineBytes = maxLineBytes;
  }

  start(): void {
    this.#startLine();
  }

  /** The last chunk's line has been read: trailers follow, or the empty line in their place. */
  get isAtTrailers(): boolean {
    return this.#place === "trailers";
  }

  /** Returns the index after the bytes it read. Throws MalformedResponse. */
  push(chunk: Chunk, from: number, sink: ChunkSink<Chunk>): number {
    let at = from;
    while (at < chunk.length && this.#place !== "trailers") {
      if (this.#place !== "data") {
        this.#take(chunk[at++] as number);
        continue;
      }
      const end = Math.min(chunk.length, at + this.#bytesLeft);
      this.#bytesLeft -= end - at;
      if (this.#bytesLeft === 0) this.#place = "data-cr";
      const part = at === 0 && end === chunk.length ? chunk : (chunk.subarray(at, end) as Chunk);
      at = end;
      sink.onBody(part);
    }
    return at;
  }

  #take(byte: number): void {
    if (this.#place === "data-cr") this.#expect(byte, CR, "data-lf");
    else if (this.#place === "data-lf") {
      this.#expect(byte, LF, "size");
      this.#startLine();
    } else this.#takeOfLine(byte);
  }

  #takeOfLine(byte: number): void {
    if (++this.#lineBytes > this.#maxLineBytes) throw new MalformedResponse("chunk line too long");
    if (this.#place === "size-end") {
      if (byte !== LF) throw new MalformedResponse("invalid CR in chunked line");
      this.#place = this.#bytesLeft === 0 ? "trailers" : "data";
      return;
    }
    if (byte === LF) throw new MalformedResponse("chunked line ends with bare LF");
    const digit = this.#place === "size" ? hexDigit(byte) : -1;
    if (digit >= 0) {
      if (++this.#digits > MAX_SIZE_DIGITS) throw new MalformedResponse("invalid byte in chunk length");
      this.#bytesLeft = this.#bytesLeft * 16 + digit;
      return;
    }
    if (this.#digits === 0) throw new MalformedResponse("invalid byte in chunk length");
    this.#place = this.#behindSize(byte);
  }

  #behindSize(byte: number): Place {
    if (byte === CR) return "size-end";
    if (this.#place === "extension") {
      if (!isFieldCharacter(byte)) throw new MalformedResponse("a control character in a chunk extension");
      return "extension";
    }
    if (byte === SEMICOLON) return "extension";
    // Some servers pad sizes to a fixed width.
    if (byte === 0x20 || byte === 0x09) return "padding";
    throw new MalformedResponse("invalid byte in chunk length");
  }

  #expect(byte: number, wanted: number, next: Place): void {
    if (byte !== wanted) throw new MalformedResponse("malformed chunked encoding");
    this.#place = next;
  }

  #startLine(): void {
    this.#place = "size";
    this.#bytesLeft = 0;
    this.#digits = 0;
    this.#lineBytes = 0;
  }
}

/** -1 if the byte is not a hexadecimal digit. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1;
}
