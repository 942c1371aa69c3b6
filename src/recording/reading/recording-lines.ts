import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { fileErrorOf, RecordingFileError } from "./recording-file-error.ts";

/** The longest line of a recording, which is the escaped output of one read. Past it the file is refused. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/**
 * Calls `onLine` with each line, without its line feed; resolves with the bytes after the last one.
 * Rejects with RecordingFileError if the file cannot be read.
 */
export async function readLines(file: string, onLine: (line: Buffer) => void): Promise<Buffer> {
  try {
    return await linesOf(file, onLine);
  } catch (error) {
    throw fileErrorOf(error, file);
  }
}

async function linesOf(file: string, onLine: (line: Buffer) => void): Promise<Buffer> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, from)) {
      const own = chunk.subarray(from, end);
      onLine(rest.length === 0 ? own : Buffer.concat([...rest, own]));
      rest = [];
      restBytes = 0;
      from = end + 1;
    }
    if (from < chunk.byteLength) rest.push(chunk.subarray(from));
    restBytes += chunk.byteLength - from;
    if (restBytes > MAX_LINE_BYTES) throw new RecordingFileError(`${file} has a line that is too long`);
  }
  return Buffer.concat(rest);
}

/** Bytes of the first read, which has most headers: a header has its command twice. */
const HEADER_BYTES = 256 * 1024;

/** Rejects with the system's error. "" if the line is longer than a recording's may be. */
export async function firstLineOf(file: string): Promise<string> {
  const handle = await open(file);
  try {
    for (let bytes = HEADER_BYTES; ; bytes = MAX_LINE_BYTES) {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, 0);
      const end = buffer.subarray(0, bytesRead).indexOf(0x0a);
      if (end !== -1) return buffer.toString("utf8", 0, end);
      if (bytesRead < bytes || bytes === MAX_LINE_BYTES) return "";
    }
  } finally {
    await handle.close();
  }
}
