import { ByteCollector, latin1Text } from "../bytes/index.ts";
import { ProtocolError } from "../protocol-error.ts";

/**
 * Turns the bytes from `start` to before `end` into one character each, because headers are not
 * always UTF-8. `latin1Text` does so in plain ECMAScript; a platform may pass a faster conversion.
 */
export type TextOf<Chunk extends Uint8Array> = (bytes: Chunk, start: number, end: number) => string;

const LF = 0x0a;
const CR = 0x0d;

/**
 * Collects lines up to and including an empty one: a head, or trailers. Reads each byte once,
 * however the chunks are cut. Lines end in CRLF or LF (RFC 9112 section 2.2); any other CR belongs
 * to its line.
 */
export class SectionReader<Chunk extends Uint8Array> {
  readonly #textOf: TextOf<Chunk>;
  /** The budget of this and all later sections, until it is set again. */
  bytesLeft = 0;
  /** The section's bytes from earlier chunks; undefined: none. Text added a byte at a time would grow quadratically. */
  #earlier: ByteCollector | undefined;
  /** Bytes of the current line in earlier chunks. */
  #lineBytes = 0;
  #endsWithCr = false;
  /** The section that `push` completed, with all line endings and the empty line. */
  text: string | undefined;

  constructor(textOf: TextOf<Chunk> = latin1Text) {
    this.#textOf = textOf;
  }

  /** The first characters of a section that is not complete yet, 16 at most. */
  get beginning(): string {
    return this.#earlier === undefined
      ? ""
      : latin1Text(this.#earlier.bytes.subarray(0, 16), 0, Math.min(16, this.#earlier.byteLength));
  }

  /** Whether a line of a section that is not complete yet has ended. */
  get hasLine(): boolean {
    return this.#earlier !== undefined && this.#lineBytes < this.#earlier.byteLength;
  }

  /** The text of a section that is not complete yet. Its cost grows with the section: not for each push. */
  get incomplete(): string {
    return this.#earlier === undefined ? "" : textOfAll(this.#earlier);
  }

  /**
   * Reads from `at` and returns the index after the bytes it read. Throws ProtocolError
   * "header-block-too-large".
   */
  push(chunk: Chunk, at: number): number {
    this.text = undefined;
    const limit = Math.min(chunk.length, at + this.bytesLeft);
    const end = this.#endOfSection(chunk, at, limit);
    if (end === -1 && limit < chunk.length) {
      throw new ProtocolError("header-block-too-large", "header size limit exceeded");
    }
    const behind = end === -1 ? chunk.length : end;
    this.bytesLeft -= behind - at;
    if (end !== -1 && this.#earlier === undefined) {
      this.text = this.#textOf(chunk, at, behind);
    } else if (behind > at) {
      this.#earlier ??= new ByteCollector();
      this.#earlier.append(chunk.subarray(at, behind));
      if (end !== -1) {
        this.text = textOfAll(this.#earlier);
        this.#earlier = undefined;
      }
    }
    return behind;
  }

  /** The index after the empty line; -1 if the chunk does not contain it. */
  #endOfSection(chunk: Chunk, start: number, limit: number): number {
    let lineStart = start - this.#lineBytes;
    for (let at = start; at < limit; at++) {
      if (chunk[at] !== LF) continue;
      const lineBytes = at - lineStart;
      // The CR of an empty line may have come in an earlier chunk.
      if (lineBytes === 0 || (lineBytes === 1 && (at > start ? chunk[at - 1] === CR : this.#endsWithCr))) {
        this.#lineBytes = 0;
        return at + 1;
      }
      lineStart = at + 1;
    }
    this.#lineBytes = limit - lineStart;
    if (limit > start) this.#endsWithCr = chunk[limit - 1] === CR;
    return -1;
  }
}

function textOfAll({ bytes }: ByteCollector): string {
  return latin1Text(bytes, 0, bytes.length);
}
