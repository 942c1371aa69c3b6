import { type FileHandle, open } from "node:fs/promises";
import { RecordingFileError } from "./recording-file-error.ts";

/** The longest line of a recording, which is the escaped output of one read. Past it the file is refused. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
const READ_BYTES = 256 * 1024;

/** Resolves, if it is a promise, when the next line may come. The bytes are valid until then. */
type OnLine = (line: Buffer) => Promise<void> | void;

/**
 * Calls `onLine` with each line, without its line feed; resolves with the bytes after the last one,
 * or early once the signal aborts. Rejects with RecordingFileError if the file cannot be read.
 */
export async function readLines(file: string, onLine: OnLine, signal?: AbortSignal): Promise<Buffer> {
  try {
    const handle = await open(file);
    try {
      return await linesOf(handle, file, onLine, signal);
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw RecordingFileError.of(error, file);
  }
}

async function linesOf(
  handle: FileHandle,
  file: string,
  onLine: OnLine,
  signal: AbortSignal | undefined,
): Promise<Buffer> {
  const buffer = Buffer.alloc(READ_BYTES);
  let rest: Buffer[] = [];
  let restBytes = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, READ_BYTES, null);
    if (bytesRead === 0) return Buffer.concat(rest);
    const chunk = buffer.subarray(0, bytesRead);
    let from = 0;
    for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a, from)) {
      const own = chunk.subarray(from, end);
      const ready = onLine(rest.length === 0 ? own : Buffer.concat([...rest, own]));
      if (ready !== undefined) await ready;
      if (signal?.aborted) return Buffer.alloc(0);
      rest = [];
      restBytes = 0;
      from = end + 1;
    }
    if (from < bytesRead) rest.push(Buffer.from(chunk.subarray(from)));
    restBytes += bytesRead - from;
    if (restBytes > MAX_LINE_BYTES) throw new RecordingFileError(`${file} has a line that is too long`);
  }
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
