import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import path from "node:path";

/** Silence of a writer on another host. Past it others finish its recordings. */
const SILENCE_MS = 5 * 60_000;

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
    rmSync(this.#file, { force: true });
  }
}

/** Whether the writer may still write. */
export function isWriterAlive(folder: string, writer: string): boolean {
  const file = fileOf(folder, writer);
  try {
    const { host, pid, started } = JSON.parse(readFileSync(file, "utf8")) as Lease;
    // A process may have had another thread before; both count by their silence.
    if (host === hostname() && pid !== process.pid) return started !== "" && startOf(pid) === started;
    return Date.now() - statSync(file).mtimeMs < SILENCE_MS;
  } catch {
    return false;
  }
}

/** Of the writers that live, one is the first: it does what is done once for the folder. */
export function isFirstWriter(folder: string, writer: string): boolean {
  return readdirSync(path.join(folder, "writers"))
    .map((name) => path.basename(name, ".json"))
    .filter((other) => other === writer || isWriterAlive(folder, other))
    .every((other) => writer <= other);
}

/** Removes the lease of a writer whose recordings are finished. */
export function removeLease(folder: string, writer: string): void {
  rmSync(fileOf(folder, writer), { force: true });
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
