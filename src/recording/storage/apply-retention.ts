import { rmdir, stat } from "node:fs/promises";
import path from "node:path";
import { findRecordings } from "../reading/find-recordings.ts";
import { deleteRecording } from "./delete-recording.ts";

export interface Retention {
  /** 0: for ever. */
  readonly maxAgeMs: number;
  /** Of all finished recordings. 0: no bound. */
  readonly maxTotalBytes: number;
}

/** Recordings that were deleted, by the reason. */
export interface Deleted {
  readonly age: number;
  readonly size: number;
}

/** Recordings that one round deletes. Past it the next round goes on. */
export const MAX_DELETED_AT_ONCE = 1_000;
const DAY_MS = 24 * 60 * 60_000;

/**
 * Deletes finished recordings that are too old, then the oldest ones past the size; each leaves its line.
 * One file after another, so that the recorder's thread goes on. Rejects with RecordingFileError.
 */
export async function applyRetention(
  folder: string,
  { maxAgeMs, maxTotalBytes }: Retention,
): Promise<Deleted> {
  const deleted = { age: 0, size: 0 };
  if (maxAgeMs === 0 && maxTotalBytes === 0) return deleted;
  const nowMs = Date.now();
  const files = await byAge(folder);
  let totalBytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { file, endedMs, bytes } of files) {
    const isOld = maxAgeMs > 0 && nowMs - endedMs > maxAgeMs;
    const isBeyond = maxTotalBytes > 0 && totalBytes > maxTotalBytes;
    if (!isOld && !isBeyond) break;
    if (deleted.age + deleted.size >= MAX_DELETED_AT_ONCE) break;
    const reason = isOld ? "age" : "size";
    await deleteRecording(folder, file, reason);
    deleted[reason] += 1;
    totalBytes -= bytes;
    // A day that is over gets no more recordings.
    if (nowMs - endedMs > 2 * DAY_MS) await removeEmpty(folder, path.dirname(file));
  }
  return deleted;
}

async function byAge(folder: string) {
  const files: { file: string; endedMs: number; bytes: number }[] = [];
  for (const file of await findRecordings(folder)) {
    // Another process may have deleted it meanwhile.
    const found = await stat(file).catch(() => undefined);
    if (found !== undefined) files.push({ file, endedMs: found.mtimeMs, bytes: found.size });
  }
  return files.sort((one, other) => one.endedMs - other.endedMs);
}

/** Removes the folder of a day, a month and a year if nothing is left in it. */
async function removeEmpty(root: string, folder: string): Promise<void> {
  if (path.relative(root, folder) === "" || path.relative(root, folder).startsWith("..")) return;
  try {
    await rmdir(folder);
  } catch {
    return;
  }
  await removeEmpty(root, path.dirname(folder));
}
