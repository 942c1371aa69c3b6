import type { FileHandle } from "node:fs/promises";
import { endOfHead, MAX_LINE_HEAD_BYTES, parseLineHead } from "./log-formatter.ts";

const BLOCK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/**
 * The offset of the last `lines` lines of a log, found backwards. Parts of one line count as one,
 * so a line is never cut at its head; text that no runtime wrote does not count.
 */
export async function findTail(file: FileHandle, lines: number): Promise<number> {
  const { size } = await file.stat();
  let wholeLines = 0;
  let isOpenAtEnd = true;
  /** The first bytes after the block: a line's head may begin in the block and end in them. */
  let behind: Buffer = Buffer.alloc(0);
  for (let blockEnd = size; blockEnd > 0; ) {
    const blockStart = Math.max(0, blockEnd - BLOCK_BYTES);
    const block = await readFully(file, blockStart, blockEnd - blockStart);
    const bytes = Buffer.concat([block, behind]);
    // A line may begin right after the block; the previous block could not tell.
    let lineEnd = blockEnd === size ? block.length : block.length + 1;
    while (lineEnd > 0) {
      const start = bytes.lastIndexOf(NEWLINE, lineEnd - 2) + 1;
      if (lineEnd < 2 || (start === 0 && blockStart > 0)) break;
      const head = headAt(bytes, start);
      if (head !== undefined) {
        const isEnd = !head.isPartial || isOpenAtEnd;
        isOpenAtEnd = false;
        if (isEnd && ++wholeLines > lines) return endOfLine(file, blockStart + start, size);
      }
      lineEnd = start;
    }
    behind = bytes.subarray(0, MAX_LINE_HEAD_BYTES);
    blockEnd = blockStart;
  }
  return 0;
}

function headAt(bytes: Buffer, start: number) {
  const end = endOfHead(bytes.subarray(0, start + MAX_LINE_HEAD_BYTES), start);
  return end === undefined ? undefined : parseLineHead(bytes.toString("latin1", start, end));
}

async function endOfLine(file: FileHandle, start: number, size: number): Promise<number> {
  for (let at = start; at < size; at += BLOCK_BYTES) {
    const block = await readFully(file, at, Math.min(BLOCK_BYTES, size - at));
    const newline = block.indexOf(NEWLINE);
    if (newline !== -1) return at + newline + 1;
  }
  return size;
}

/** Returns less if the file has shrunk meanwhile. */
async function readFully(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
