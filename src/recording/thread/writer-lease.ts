import {
  closeSync,
  constants,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { hostname } from "node:os";
import path from "node:path";

/** Time since a writer on another host renewed its lease. Past it others finish its recordings. */
const SILENCE_MS = 5 * 60_000;
/** How long an old lease is watched for renewals; hosts' clocks differ and jump. Past it its writer is silent. */
const WATCHED_MS = 30_000;
/** Enough for the last lines of about a thousand recordings. */
const RESERVE_BYTES: number = 1024 * 1024;

/** For each lease file: its last mtime, and when the monotonic clock showed that mtime first. */
const seen = new Map<string, { readonly mtimeMs: number; readonly sinceMs: number }>();

/** A link or a pipe at a lease's name is not read. */
const OWN = {
  encoding: "utf8",
  // The types of readFileSync lack numbers, which it takes.
  flag: (constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK) as never,
} as const;

interface Lease {
  readonly host: string;
  readonly pid: number;
  /**
   * The process's start time from /proc. It distinguishes the process from a later one with the
   * same pid.
   */
  readonly started: string;
}

/** A file in the folder that shows that a writer is still running. */
export class WriterLease {
  readonly #file: string;

  constructor(folder: string, writer: string) {
    this.#file = fileOf(folder, writer);
    mkdirSync(path.dirname(this.#file), { recursive: true, mode: 0o700 });
    const lease: Lease = { host: hostname(), pid: process.pid, started: startOf(process.pid) };
    writeFileSync(this.#file, JSON.stringify(lease), { mode: 0o600, flag: "wx" });
  }

  renew(): void {
    try {
      lutimesSync(this.#file, new Date(), new Date());
    } catch {
      // If the disk fails, the writing of recordings reports it.
    }
  }

  end(): void {
    try {
      rmSync(this.#file, { force: true });
    } catch {
      // Others notice that the process has ended.
    }
  }
}

/** True if the writer may still be running. */
export function isWriterAlive(folder: string, writer: string): boolean {
  const file = fileOf(folder, writer);
  try {
    const { host, pid, started } = JSON.parse(readFileSync(file, OWN)) as Lease;
    // For other hosts, and for earlier threads of this process, only renewals of the lease count. A
    // restarted container's process has its predecessor's pid, but another start time.
    if (host === hostname() && (pid !== process.pid || started !== startOf(pid)))
      return started !== "" && startOf(pid) === started;
    return !isSilent(file, lstatSync(file).mtimeMs);
  } catch (error) {
    // An unreadable lease does not prove that the writer died: this process may lack descriptors.
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") seen.delete(file);
    return code !== undefined && code !== "ENOENT";
  }
}

/** A writer renews its lease each second. Renewals prove more than its clock, which may be wrong. */
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

/** True for the first of the live writers, which does the folder's common work. */
export function isFirstWriter(folder: string, writer: string): boolean {
  return writersIn(folder)
    .filter((other) => other === writer || isWriterAlive(folder, other))
    .every((other) => writer <= other);
}

/** Removes a writer's lease, so that others finish its recordings. */
export function removeLease(folder: string, writer: string): void {
  rmSync(fileOf(folder, writer), { force: true });
}

/** Removes leases and reserved space of dead writers. Returns the first error. */
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
    // Reads reserves before leases: a writer that starts meanwhile creates its lease first.
    const reserves = readdirSync(folder).filter((name) => name.startsWith(RESERVE));
    const writers = new Set(writersIn(folder));
    for (const name of reserves)
      if (!writers.has(name.slice(RESERVE.length)))
        attempt(() => rmSync(path.join(folder, name), { force: true }));
  });
  return problem;
}

/** The file in which a writer reserves space. */
export function reserveOf(folder: string, writer: string): string {
  return path.join(folder, `${RESERVE}${writer}`);
}

const RESERVE = "reserve-";

/** Throws the system's error, because an unreadable folder may have writers. */
function writersIn(folder: string): string[] {
  try {
    return readdirSync(path.join(folder, "writers")).map((name) => path.basename(name, ".json"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** The host in the lease; undefined while the lease is being written. */
function hostOf(folder: string, writer: string): string | undefined {
  try {
    const { host } = JSON.parse(readFileSync(fileOf(folder, writer), OWN)) as Lease;
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

/** Reserved space that is freed on a full disk, so that recordings can still be ended. */
export interface Reserve {
  release(): void;
  /** Reserves the space again if it was released. */
  renew(): void;
}

/** A file that reserves space on the disk while there is enough. */
export class ReserveFile implements Reserve {
  readonly #file: string;
  #isTaken = false;

  constructor(file: string) {
    this.#file = file;
    this.renew();
  }

  release(): void {
    this.#isTaken = false;
    try {
      rmSync(this.#file, { force: true });
    } catch {
      // If the folder became read-only the space stays reserved, and the next write reports the error.
    }
  }

  renew(): void {
    if (this.#isTaken) return;
    try {
      // A link there is removed, not followed.
      rmSync(this.#file, { force: true });
      const handle = openSync(this.#file, "wx", 0o600);
      try {
        // Not zeros, which some file systems store as a hole.
        for (let written = 0; written < RESERVE_BYTES; )
          written += writeSync(handle, FILLING, 0, Math.min(FILLING.byteLength, RESERVE_BYTES - written));
        this.#isTaken = true;
      } finally {
        closeSync(handle);
      }
    } catch {
      this.release();
    }
  }
}

const FILLING = Buffer.alloc(64 * 1024, "sluice");
