import type { FileHandle } from "node:fs/promises";
import { poisonFreed } from "../net/freed-memory.ts";
import type { PartTaker } from "../sessions/output-sink.ts";

/** Bytes per write. Messages bring 16 to 32 KiB, and a write for each would be most of the work. */
const PIECE_BYTES = 1024 * 1024;
/** Pieces of 1 MiB that wait for the disk. Past it the download's connection is not read. */
const MAX_WAITING = 2;
/** Keeps pieces of finished files, so that a folder of small files does not allocate a megabyte each. */
const MAX_SPARE_PIECES = MAX_WAITING + 2;

const sparePieces: Buffer[] = [];

/**
 * Writes bytes to a file in large pieces, in sequence, from `position` on. Reports every byte to
 * `onPiece`, in order, before it is written.
 */
export class FileWriter implements PartTaker {
  readonly #file: FileHandle;
  readonly #onPiece: (piece: Uint8Array) => void;
  #piece: Buffer | undefined;
  #pieceBytes = 0;
  #position: number;
  #waiting = 0;
  #written: Promise<void> = Promise.resolve();

  constructor(file: FileHandle, position: number, onPiece: (piece: Uint8Array) => void) {
    this.#file = file;
    this.#position = position;
    this.#onPiece = onPiece;
  }

  takePart(part: Uint8Array): Promise<void> | undefined {
    for (let at = 0; at < part.byteLength; ) {
      const end = Math.min(part.byteLength, at + PIECE_BYTES - this.#pieceBytes);
      this.#piece ??= sparePieces.pop() ?? Buffer.allocUnsafeSlow(PIECE_BYTES);
      this.#piece.set(at === 0 && end === part.byteLength ? part : part.subarray(at, end), this.#pieceBytes);
      this.#pieceBytes += end - at;
      at = end;
      if (this.#pieceBytes === PIECE_BYTES) this.#writePiece(this.#piece);
    }
    return this.#waiting > MAX_WAITING ? this.#written : undefined;
  }

  /** Resolves when all accepted bytes are in the file. Rejects with the file system's error. */
  finish(): Promise<void> {
    if (this.#piece !== undefined) this.#writePiece(this.#piece);
    return this.#written;
  }

  #writePiece(piece: Buffer): void {
    const bytes = this.#pieceBytes;
    const position = this.#position;
    this.#onPiece(piece.subarray(0, bytes));
    this.#piece = undefined;
    this.#pieceBytes = 0;
    this.#position += bytes;
    this.#waiting += 1;
    this.#written = this.#written.then(async () => {
      await writeAll(this.#file, piece.subarray(0, bytes), position);
      this.#waiting -= 1;
      poisonFreed(piece);
      if (sparePieces.length < MAX_SPARE_PIECES) sparePieces.push(piece);
    });
    // `takePart` or `finish` reports the error.
    this.#written.catch(() => {});
  }
}

/** A nearly full disk writes a part; the next write reports the error. */
async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let at = 0; at < bytes.byteLength; ) {
    at += (await file.write(bytes, at, bytes.byteLength - at, position + at)).bytesWritten;
  }
}
