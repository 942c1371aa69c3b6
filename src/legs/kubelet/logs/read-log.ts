import { type FileHandle, open, stat } from "node:fs/promises";
import type { PodLogOptions } from "@sluice/client/internal/api/pod-log-options";
import { FileChange } from "./file-change.ts";
import { findTail } from "./find-tail.ts";
import { LogFormatter } from "./log-formatter.ts";

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
  throw new Error("the log is no regular file");
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
