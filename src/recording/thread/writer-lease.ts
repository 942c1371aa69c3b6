import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import path from "node:path";

/** Silence of a writer on another host. Past it others finish its recordings. */
const SILENCE_MS = 5 * 60_000;
/** How long a lease that is this old by the clock is watched: clocks of hosts differ, and jump. Past it its writer is silent. */
const WATCHED_MS = 30_000;

/** By its file: the time of a lease, and since when it is the same by a clock that does not jump. */
const seen = new Map<string, { readonly mtimeMs: number; readonly sinceMs: number }>();

interface Lease {
  readonly host: string;
  readonly pid: number;
  /** When the process started, as the system counts; tells it from a later one with its number. */
  readonly started: string;
}

/** Says in the folder that a writer's recordings are still being written. */
export class WriterLease {
  readonly #file: string;

  constructor(folder: string, writer: string) {
    this.#file = fileOf(folder, writer);
    mkdirSync(path.dirname(this.#file), { recursive: true, mode: 0o700 });
    const lease: Lease = { host: hostname(), pid: process.pid, started: startOf(process.pid) };
    writeFileSync(this.#file, JSON.stringify(lease), { mode: 0o600 });
  }

  renew(): void {
    try {
      utimesSync(this.#file, new Date(), new Date());
    } catch {
      // A disk that fails says so where recordings are written.
    }
  }

  end(): void {
    try {
      rmSync(this.#file, { force: true });
    } catch {
      // Others see that the process is gone.
    }
  }
}

/** Whether the writer may still write. */
export function isWriterAlive(folder: string, writer: string): boolean {
  const file = fileOf(folder, writer);
  try {
    const { host, pid, started } = JSON.parse(readFileSync(file, "utf8")) as Lease;
    // A process may have had another thread before; both count by their silence.
    if (host === hostname() && pid !== process.pid) return started !== "" && startOf(pid) === started;
    return !isSilent(file, statSync(file).mtimeMs);
  } catch (error) {
    // A lease that is there, and cannot be read now, is no proof: a process may have no free descriptor.
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") seen.delete(file);
    return code !== undefined && code !== "ENOENT";
  }
}

/** A writer renews its lease each second; what its clock says is worth less than that it does. */
function isSilent(file: string, mtimeMs: number): boolean {
  const nowMs = performance.now();
  const known = seen.get(file);
  if (known?.mtimeMs !== mtimeMs) {
    seen.set(file, { mtimeMs, sinceMs: nowMs });
    return false;
  }
  const watchedMs = nowMs - known.sinceMs;
  return watchedMs >= SILENCE_MS || (watchedMs >= WATCHED_MS && Date.now() - mtimeMs >= SILENCE_MS);
}

/** Of the writers that live, one is the first: it does what is done once for the folder. */
export function isFirstWriter(folder: string, writer: string): boolean {
  return writersIn(folder)
    .filter((other) => other === writer || isWriterAlive(folder, other))
    .every((other) => writer <= other);
}

/** For a thread of this process that ended: its recordings may be finished from now on. */
export function removeLease(folder: string, writer: string): void {
  rmSync(fileOf(folder, writer), { force: true });
}

/** Removes the leases and the reserved space of writers that are gone. Returns the first problem. */
export function removeLeftLeases(folder: string): unknown {
  let problem: unknown;
  const attempt = (remove: () => void): void => {
    try {
      remove();
    } catch (error) {
      problem ??= error;
    }
  };
  attempt(() => {
    for (const writer of writersIn(folder))
      if (hostOf(folder, writer) !== undefined && !isWriterAlive(folder, writer))
        attempt(() => removeLease(folder, writer));
    // Before the leases: a writer that starts meanwhile has its lease before its space.
    const reserves = readdirSync(folder).filter((name) => name.startsWith(RESERVE));
    const writers = new Set(writersIn(folder));
    for (const name of reserves)
      if (!writers.has(name.slice(RESERVE.length)))
        attempt(() => rmSync(path.join(folder, name), { force: true }));
  });
  return problem;
}

/** Where a writer reserves space, within the folder. */
export function reserveOf(folder: string, writer: string): string {
  return path.join(folder, `${RESERVE}${writer}`);
}

const RESERVE = "reserve-";

/** Throws the system's error: a folder that cannot be read is not one without writers. */
function writersIn(folder: string): string[] {
  try {
    return readdirSync(path.join(folder, "writers")).map((name) => path.basename(name, ".json"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Undefined while the lease is being written. */
function hostOf(folder: string, writer: string): string | undefined {
  try {
    const { host } = JSON.parse(readFileSync(fileOf(folder, writer), "utf8")) as Lease;
    return host;
  } catch {
    return undefined;
  }
}

function fileOf(folder: string, writer: string): string {
  return path.join(folder, "writers", `${path.basename(writer)}.json`);
}

/** "" if there is no such process. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  } catch {
    return "";
  }
}
