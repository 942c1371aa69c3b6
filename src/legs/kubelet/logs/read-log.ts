import { type FSWatcher, watch } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import path from "node:path";
import type { PodLogOptions } from "@sluice/client/internal/api/pod-log-options";
import { endOfHead, LogFormatter, MAX_LINE_HEAD_BYTES, parseLineHead } from "./log-formatter.ts";

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
  /** The first bytes after the block: a line's head may begin in the block and end in these. */
  let behind: Buffer = Buffer.alloc(0);
  for (let blockEnd = size; blockEnd > 0; ) {
    const blockStart = Math.max(0, blockEnd - BLOCK_BYTES);
    const block = await readFully(file, blockStart, blockEnd - blockStart);
    const bytes = Buffer.concat([block, behind]);
    // A line may begin right after the block, which the block itself does not show.
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

/**
 * Wakes readers when a file grows or is replaced. If the system cannot watch it (too many watches,
 * no folder), only the time-out wakes them.
 */
class FileChange {
  readonly #watcher: FSWatcher | undefined;
  #hasChanged = false;
  #wake: (() => void) | undefined;

  constructor(file: string) {
    const name = path.basename(file);
    try {
      this.#watcher = watch(path.dirname(file), { persistent: false }, (_event, changed) => {
        if (changed === null || changed === name) this.#notice();
      });
      this.#watcher.on("error", () => this.#watcher?.close());
    } catch {
      this.#watcher = undefined;
    }
  }

  /** Resolves at the next change, at one since the last call, when aborted, or after `timeoutMs`. */
  async next(timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (!this.#hasChanged && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, timeoutMs);
        signal.addEventListener("abort", resolve as () => void, { once: true });
        this.#wake = resolve;
        this.#settle = () => {
          clearTimeout(timer);
          signal.removeEventListener("abort", resolve as () => void);
        };
      });
      this.#settle?.();
      this.#wake = undefined;
    }
    this.#hasChanged = false;
  }

  close(): void {
    this.#watcher?.close();
  }

  #settle: (() => void) | undefined;

  #notice(): void {
    this.#hasChanged = true;
    this.#wake?.();
  }
}

const READ_BYTES = 64 * 1024;
/** How often to check a followed log and its container without a change event. */
const LOOK_AGAIN_MS = 1_000;

export interface LogSource {
  /** Absolute path of the runtime's current log file; rotation replaces the file. */
  readonly path: string;
  /** Whether the container may write more. Called at the end of a followed log. */
  isRunning(): Promise<boolean>;
}

/**
 * Yields the log until its end, or the container's end if followed; reads a rotated file to its end
 * first. Throws file system errors; ends early when aborted. Closes `opened`.
 */
export async function* readLog(
  opened: FileHandle,
  source: LogSource,
  options: PodLogOptions,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const formatter = new LogFormatter(options);
  let file = opened;
  const change = options.follow ? new FileChange(source.path) : undefined;
  try {
    let position = options.tailLines === undefined ? 0 : await findTail(file, options.tailLines);
    // After the container stops, one more round reads its last output.
    let isLastRound = !options.follow;
    for (;;) {
      for (let chunk = await readAt(file, position); chunk.length > 0; chunk = await readAt(file, position)) {
        position += chunk.length;
        const part = formatter.push(chunk);
        if (part.length > 0) yield part;
        if (formatter.isFull || signal.aborted) return;
      }
      const successor = change && (await successorOf(file, source.path, position));
      if (successor !== undefined) {
        // The runtime writes to the old file until it has opened the new one.
        for (
          let chunk = await readAt(file, position);
          chunk.length > 0;
          chunk = await readAt(file, position)
        ) {
          position += chunk.length;
          yield formatter.push(chunk);
        }
        await file.close();
        file = successor;
        formatter.startFile();
        position = 0;
        continue;
      }
      if (isLastRound || change === undefined || signal.aborted) return;
      await change.next(LOOK_AGAIN_MS, signal);
      if (signal.aborted) return;
      isLastRound = !(await source.isRunning());
    }
  } finally {
    change?.close();
    await file.close();
  }
}

/** Throws file system errors, and for anything but a regular file. */
export async function openLog(path: string): Promise<FileHandle> {
  const file = await open(path, "r");
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new Error("the log is not a regular file");
}

/** The path's current file if it is another one, or the same one truncated. */
async function successorOf(
  file: FileHandle,
  path: string,
  position: number,
): Promise<FileHandle | undefined> {
  try {
    const [present, known] = await Promise.all([stat(path), file.stat()]);
    const isSame = present.ino === known.ino && present.dev === known.dev;
    return isSame && present.size >= position ? undefined : await openLog(path);
  } catch {
    // During rotation there may be no file at the path.
    return undefined;
  }
}

async function readAt(file: FileHandle, position: number): Promise<Uint8Array> {
  const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES, position);
  return buffer.subarray(0, bytesRead);
}
