import { readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";

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
export async function noteRound(folder: string, nowMs: number, maxAgeMs: number): Promise<AgeVerdict> {
  const mostMs = Math.min(MAX_CLOCK_STEP_MS, maxAgeMs);
  const before = await readClock(folder);
  const after = nextClock(before, nowMs, mostMs);
  await writeClock(folder, after);
  if (before === undefined || nowMs - before.atMs <= mostMs) return { isAgeKnown: after.waitMs === 0 };
  const was = new Date(before.atMs).toISOString();
  const problem = `the clock went from ${was} to ${new Date(nowMs).toISOString()}: no recording is deleted by its age for ${Math.round(mostMs / 60_000)} minutes`;
  return { isAgeKnown: false, problem };
}

/** Undefined before the first round, and for a file that is damaged. */
async function readClock(folder: string): Promise<RetentionClock | undefined> {
  try {
    const { atMs, waitMs } = JSON.parse(await readFile(path.join(folder, CLOCK), "utf8"));
    return Number.isFinite(atMs) && Number.isFinite(waitMs) ? { atMs, waitMs } : undefined;
  } catch {
    return undefined;
  }
}

async function writeClock(folder: string, clock: RetentionClock): Promise<void> {
  const file = path.join(folder, CLOCK);
  try {
    await writeFile(`${file}.new`, JSON.stringify(clock), { mode: 0o600 });
    await rename(`${file}.new`, file);
  } catch {
    // A full disk must not keep old recordings.
  }
}
