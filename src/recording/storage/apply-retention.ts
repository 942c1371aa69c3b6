import { constants } from "node:fs";
import { lstat, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { FORMAT, formatOf } from "../format/asciicast.ts";
import { findRecordings } from "../reading/find-recordings.ts";
import { firstLineOf } from "../reading/recording-lines.ts";
import { deleteRecording, UPLOADED } from "./delete-recording.ts";

export interface Retention {
  /** 0 means forever. */
  readonly maxAgeMs: number;
  /** Limit for all finished recordings together; 0 means no limit. */
  readonly maxTotalBytes: number;
  /**
   * Set if recordings go to a store: only uploaded ones are deleted, at the latest this long after the
   * upload.
   */
  readonly keepUploadedMs?: number | undefined;
}

/** Counts of deleted recordings, by reason. */
export interface Deleted {
  readonly age: number;
  readonly size: number;
  readonly uploaded: number;
}

/** `problem`: why recordings that look too old stay, in the first round that keeps them; the first if several. */
interface RetentionRound extends Deleted {
  readonly problem?: string | undefined;
}

/** Recordings that one round deletes. Past it the next round continues. */
const MAX_DELETED_AT_ONCE = 1_000;
/** A round ends at so many recordings that cannot be deleted; later rounds leave them out for a while. */
const FAILURES_AT_ONCE = 10;
const LEFT_OUT_MS = 60 * 60_000;

/** When recordings could not be deleted, by this thread's monotonic clock. */
const failedMs = new Map<string, number>();
const DAY_MS = 24 * 60 * 60_000;

/**
 * Deletes finished recordings that are too old, then the oldest beyond the total size; not those of a
 * newer format, nor those that it cannot. Lists them in DELETED. Rejects with RecordingFileError.
 */
export async function applyRetention(
  folder: string,
  retention: Retention,
  /** Frees space on a full disk, where DELETED must grow before a recording goes. */
  makeRoom: () => void = () => {},
): Promise<RetentionRound> {
  const deleted = { age: 0, size: 0, uploaded: 0 };
  const { maxAgeMs, maxTotalBytes, keepUploadedMs } = retention;
  if (maxAgeMs === 0 && maxTotalBytes === 0 && keepUploadedMs === undefined) return deleted;
  const nowMs = Date.now();
  const { isAgeKnown, problem: ofClock } =
    maxAgeMs === 0 ? { isAgeKnown: false } : await noteRound(folder, nowMs, maxAgeMs);
  let problem = ofClock;
  const applied = isAgeKnown ? retention : { ...retention, maxAgeMs: 0 };
  const files = await byAge(folder);
  let totalBytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
  let count = 0;
  let failures = 0;
  // Deletes one at a time, so that the thread can write recordings meanwhile.
  for (const recording of files) {
    const reason = reasonOf(recording, totalBytes, nowMs, applied);
    if (reason === undefined || isLeftOut(recording.file) || (await isNewerFormat(recording.file))) continue;
    try {
      await deleteRecording(folder, recording.file, reason).catch(async (error: unknown) => {
        if (!isFull(error)) throw error;
        makeRoom();
        await deleteRecording(folder, recording.file, reason);
      });
    } catch (error) {
      // A full disk refuses all, and the next round needs them.
      if (!isFull(error)) failedMs.set(recording.file, performance.now());
      problem ??= (error as Error).message;
      failures += 1;
      if (failures === FAILURES_AT_ONCE) break;
      continue;
    }
    failedMs.delete(recording.file);
    deleted[reason] += 1;
    totalBytes -= recording.bytes;
    // No more recordings are written to a day that is over.
    if (nowMs - recording.endedMs > 2 * DAY_MS) await removeEmpty(folder, path.dirname(recording.file));
    count += 1;
    if (count >= MAX_DELETED_AT_ONCE) break;
  }
  return { ...deleted, problem };
}

function isFull(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
  return code === "ENOSPC" || code === "EDQUOT";
}

/** Whether its deletion failed a short while ago. A list of deleted recordings has a line for each try. */
function isLeftOut(file: string): boolean {
  const atMs = failedMs.get(file);
  return atMs !== undefined && performance.now() - atMs < LEFT_OUT_MS;
}

interface StoredFile {
  readonly file: string;
  readonly endedMs: number;
  readonly bytes: number;
  readonly uploadedMs: number | undefined;
}

function reasonOf(
  { endedMs, uploadedMs }: StoredFile,
  totalBytes: number,
  nowMs: number,
  { maxAgeMs, maxTotalBytes, keepUploadedMs }: Retention,
): keyof Deleted | undefined {
  if (keepUploadedMs !== undefined && uploadedMs === undefined) return undefined;
  if (maxAgeMs > 0 && nowMs - endedMs > maxAgeMs) return "age";
  if (maxTotalBytes > 0 && totalBytes > maxTotalBytes) return "size";
  return keepUploadedMs !== undefined && nowMs - (uploadedMs ?? nowMs) >= keepUploadedMs
    ? "uploaded"
    : undefined;
}

async function isNewerFormat(file: string): Promise<boolean> {
  // Another process may have deleted the file meanwhile.
  return formatOf(await firstLineOf(file).catch(() => "")) > FORMAT;
}

async function byAge(folder: string): Promise<StoredFile[]> {
  const files: StoredFile[] = [];
  const found = async (file: string) => {
    const entry = await lstat(file).catch(() => undefined);
    return entry?.isFile() ? entry : undefined;
  };
  for (const file of await findRecordings(folder)) {
    // Another process may have deleted the file meanwhile.
    const recording = await found(file);
    if (recording === undefined) continue;
    const uploadedMs = (await found(`${file}${UPLOADED}`))?.mtimeMs;
    files.push({ file, endedMs: recording.mtimeMs, bytes: recording.size, uploadedMs });
  }
  return files.sort((one, other) => one.endedMs - other.endedMs);
}

/** Removes the folders of the day, month and year that are empty. */
async function removeEmpty(root: string, folder: string): Promise<void> {
  if (path.relative(root, folder) === "" || path.relative(root, folder).startsWith("..")) return;
  try {
    await rmdir(folder);
  } catch {
    return;
  }
  await removeEmpty(root, path.dirname(folder));
}

/**
 * How far the clock may go forward between two rounds of retention. Past it no recording is deleted by its
 * age for as long.
 */
const MAX_CLOCK_STEP_MS: number = 24 * 60 * 60_000;

/** The file in the folder that has the time of the last round. */
const CLOCK = "retention-clock.json";

interface RetentionClock {
  /** The last round, in milliseconds since 1970. */
  readonly atMs: number;
  /** How much longer deletion by age waits. */
  readonly waitMs: number;
}

/**
 * The clock after a round at `nowMs`. A step forward may be wrong, and would make all recordings old, so
 * deletion waits; a step back ends the wait.
 */
function nextClock(before: RetentionClock | undefined, nowMs: number, mostMs: number): RetentionClock {
  const stepMs = nowMs - (before?.atMs ?? nowMs);
  if (stepMs > mostMs) return { atMs: nowMs, waitMs: mostMs };
  const waitMs = stepMs < 0 ? 0 : Math.max(0, (before?.waitMs ?? 0) - stepMs);
  return { atMs: nowMs, waitMs };
}

/** Whether recordings may be deleted by age now. `problem`: set in the round that finds a step. */
interface AgeVerdict {
  readonly isAgeKnown: boolean;
  readonly problem?: string;
}

/** Notes the time of this round in the folder, which later starts read, too. */
async function noteRound(folder: string, nowMs: number, maxAgeMs: number): Promise<AgeVerdict> {
  const mostMs = Math.min(MAX_CLOCK_STEP_MS, maxAgeMs);
  const before = await readClock(folder);
  const after = nextClock(before, nowMs, mostMs);
  await writeClock(folder, after);
  if (before === undefined || nowMs - before.atMs <= mostMs) return { isAgeKnown: after.waitMs === 0 };
  const was = new Date(before.atMs).toISOString();
  const problem = `the clock went from ${was} to ${new Date(nowMs).toISOString()}: no recording is deleted by its age for ${Math.round(mostMs / 60_000)} minutes`;
  return { isAgeKnown: false, problem };
}

/** A link or a pipe at the file's name is not read. */
const OWN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Undefined before the first round, and for a file that is damaged. */
async function readClock(folder: string): Promise<RetentionClock | undefined> {
  try {
    const { atMs, waitMs } = JSON.parse(
      await readFile(path.join(folder, CLOCK), { encoding: "utf8", flag: OWN }),
    );
    return Number.isFinite(atMs) && Number.isFinite(waitMs) ? { atMs, waitMs } : undefined;
  } catch {
    return undefined;
  }
}

async function writeClock(folder: string, clock: RetentionClock): Promise<void> {
  const file = path.join(folder, CLOCK);
  try {
    // A link there is removed, not followed.
    await rm(`${file}.new`, { force: true });
    await writeFile(`${file}.new`, JSON.stringify(clock), { mode: 0o600, flag: "wx" });
    await rename(`${file}.new`, file);
  } catch {
    // A full disk must not keep old recordings.
  }
}
