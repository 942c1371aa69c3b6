import type { FileHandle } from "node:fs/promises";
import { poisonFreed } from "../net/freed-memory.ts";

/** Bytes per read. */
const PIECE_BYTES = 960 * 1024;

/** The bytes of a file in [start, end), one piece ahead of its reader. A piece is valid until the next one is requested. */
export async function* readPieces(
  file: FileHandle,
  start: number,
  end: number,
): AsyncGenerator<Buffer, void, void> {
  const pieceBytes = Math.max(1, Math.min(PIECE_BYTES, end - start));
  let [memory, spare] = [Buffer.allocUnsafeSlow(pieceBytes), Buffer.allocUnsafeSlow(pieceBytes)];
  const read = (into: Buffer, position: number) =>
    file.read(into, 0, Math.min(into.byteLength, end - position), position);
  let position = start;
  let reading = read(memory, position);
  try {
    for (;;) {
      const { bytesRead } = await reading;
      if (bytesRead === 0) return;
      position += bytesRead;
      reading = read(spare, position);
      // The next iteration awaits it.
      reading.catch(() => {});
      yield memory.subarray(0, bytesRead);
      poisonFreed(memory);
      [memory, spare] = [spare, memory];
    }
  } finally {
    await reading.catch(() => {});
  }
}
