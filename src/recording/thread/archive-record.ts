import { createHash, type Hash } from "node:crypto";
import { type ArchivedFile, ArchiveReader } from "../format/archive-reader.ts";
import type { EventCode } from "../format/asciicast.ts";

/** Files of one archive that are recorded. Past it they are only counted. */
const MAX_FILES = 10_000;

/**
 * Records the files of an archive that is packed or unpacked. Records other output as output, and only
 * a digest of other input.
 */
export class ArchiveRecord {
  readonly #reader = new ArchiveReader((file) => this.#file(file));
  readonly #write: (timeMs: number, code: EventCode, data: string) => void;
  #nowMs = 0;
  #files = 0;
  /** Bytes of output outside archives that may still be recorded. */
  #left: number;
  #beyond = 0;
  #isInput = false;
  #announced: object | undefined;
  #other: { readonly hash: Hash; bytes: number } | undefined;

  constructor(maxOutputBytes: number, write: (timeMs: number, code: EventCode, data: string) => void) {
    this.#left = maxOutputBytes;
    this.#write = write;
  }

  /** Takes output of a command that packs. Returns the part to record as output. */
  push(timeMs: number, bytes: Uint8Array): Uint8Array | undefined {
    this.#nowMs = timeMs;
    return this.#bounded(this.#reader.push(bytes));
  }

  /** Takes input of a command that unpacks. */
  take(timeMs: number, bytes: Uint8Array): void {
    this.#nowMs = timeMs;
    this.#isInput = true;
    const rest = this.#reader.push(bytes);
    if (rest !== undefined) this.#digest(rest);
  }

  /**
   * Call when bytes are missing: the rest cannot be read as an archive. Returns output that was held
   * back.
   */
  breakOff(timeMs: number): Uint8Array | undefined {
    this.#nowMs = timeMs;
    const held = this.#reader.end();
    if (!this.#isInput) return this.#bounded(held);
    if (held !== undefined) this.#digest(held);
    return undefined;
  }

  /** Records the name of a file that is still being read, so that a crash does not hide it. */
  announce(): void {
    const { current } = this.#reader;
    if (current === undefined || current === this.#announced || this.#files >= MAX_FILES) return;
    this.#announced = current;
    const { name, size } = current;
    this.#write(this.#nowMs, "f", JSON.stringify({ name, type: "file", size, begun: true }));
  }

  /** Returns output that was held back. */
  end(timeMs: number): Uint8Array | undefined {
    const held = this.breakOff(timeMs);
    if (this.#files > MAX_FILES)
      this.#write(timeMs, "m", `files that are not recorded: ${this.#files - MAX_FILES}`);
    if (this.#beyond > 0)
      this.#write(timeMs, "m", `output beyond the bound of the recording: ${this.#beyond} bytes`);
    if (this.#other !== undefined) {
      const { bytes, hash } = this.#other;
      this.#write(timeMs, "d", JSON.stringify({ of: "stdin", bytes, sha256: hash.digest("base64") }));
    }
    return held;
  }

  #file(file: ArchivedFile): void {
    this.#files += 1;
    if (this.#files <= MAX_FILES) this.#write(this.#nowMs, "f", JSON.stringify(file));
  }

  #bounded(rest: Uint8Array | undefined): Uint8Array | undefined {
    if (rest === undefined) return undefined;
    const own = rest.subarray(0, this.#left);
    this.#left -= own.byteLength;
    this.#beyond += rest.byteLength - own.byteLength;
    return own.byteLength > 0 ? own : undefined;
  }

  #digest(rest: Uint8Array): void {
    this.#other ??= { hash: createHash("sha256"), bytes: 0 };
    this.#other.hash.update(rest);
    this.#other.bytes += rest.byteLength;
  }
}
