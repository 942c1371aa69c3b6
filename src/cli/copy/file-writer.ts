import type { FileHandle } from "node:fs/promises";
import type { PartTaker } from "../../client/output-sink.ts";
import { poisonFreed } from "../../net/freed-memory.ts";

/** What goes to the disk at once: messages come in pieces of 16 to 32 KiB, and a write for each of them is most of the work. */
const PIECE_BYTES = 1024 * 1024;
/** Full pieces that may wait for the disk before the source has to. */
const MAX_WAITING = 2;
/** Pieces of files that are done, for the next: a folder of small files would make a megabyte for each. */
const MAX_SPARE_PIECES = MAX_WAITING + 2;

const sparePieces: Buffer[] = [];

/**
 * Writes what it is given to a file, in large pieces, one after the other, from `position` on. Every byte is told to `onPiece`, in
 * order, before it is written.
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

  /** Resolves when all that was taken is in the file. Rejects with the error of the file system. */
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
    // `takePart` or `finish` tells it.
    this.#written.catch(() => {});
  }
}

/** A disk that is nearly full takes a part, and then says why it takes no more. */
async function writeAll(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let at = 0; at < bytes.byteLength; ) {
    at += (await file.write(bytes, at, bytes.byteLength - at, position + at)).bytesWritten;
  }
}
