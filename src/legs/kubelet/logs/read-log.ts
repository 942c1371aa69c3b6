import { type FileHandle, open, stat } from "node:fs/promises";
import type { PodLogOptions } from "../../../api/pod-log-options.ts";
import { FileChange } from "./file-change.ts";
import { findTail } from "./find-tail.ts";
import { LogFormatter } from "./log-formatter.ts";

const READ_BYTES = 64 * 1024;
/** How often a followed log is looked at when nothing tells of a change, and its container asked about. */
const LOOK_AGAIN_MS = 1_000;

export interface LogSource {
  /** Absolute; the runtime's present log file, which is replaced when it is rotated. */
  readonly path: string;
  /** Whether more may come. Asked about a followed log at its end. */
  isRunning(): Promise<boolean>;
}

/**
 * The log in parts, until its end or, followed, the container's; a rotated file is read to its end
 * first. Throws what the file system reports, and ends early when aborted. Closes `opened`.
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
    // Once it has stopped, what it wrote last is read before the log ends.
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
        // The runtime writes to the old file until it has the new one.
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

/** Throws what the file system says, and for what is no regular file. */
export async function openLog(path: string): Promise<FileHandle> {
  const file = await open(path, "r");
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new Error("the log is no regular file");
}

/** The file that is now at the path, when it is another one, or the same one cut short. */
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
    // Between the renaming of the old file and the making of the new one there is none.
    return undefined;
  }
}

async function readAt(file: FileHandle, position: number): Promise<Uint8Array> {
  const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES, position);
  return buffer.subarray(0, bytesRead);
}
