import {
  close,
  closeSync,
  fdatasync,
  fstat,
  fstatSync,
  fsync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdirSync,
  open,
  openSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import path from "node:path";

/** File operations of the recorder's thread. Every call may throw the system's error or take long. */
export interface Disk {
  /** Creates a file that only its owner can access. Throws if it exists. */
  create(file: string): number;
  /** Writes all bytes at this position. */
  write(handle: number, bytes: Uint8Array, position: number): void;
  /** Calls back once the file's contents are on the disk; with ENOENT if the file was removed. */
  sync(handle: number, done: (error: Error | null) => void): void;
  /** Truncates the file to this length. */
  truncate(handle: number, length: number): void;
  close(handle: number): void;
  /** Renames the file. Throws if `to` exists. */
  rename(from: string, to: string): void;
  /** Calls back once the names in the file's folder are on the disk. */
  syncNames(file: string, done: (error: Error | null) => void): void;
  remove(file: string): void;
}

export const systemDisk: Disk = {
  create: (file) => {
    const folder = path.dirname(file);
    const first = mkdirSync(folder, { recursive: true, mode: 0o700 });
    requireOwnDay(folder);
    if (first !== undefined) syncUpTo(path.dirname(first), path.dirname(folder));
    return openSync(file, "wx+", 0o600);
  },
  write: (handle, bytes, position) => {
    let done = 0;
    while (done < bytes.byteLength) done += writeSync(handle, bytes, done, undefined, position + done);
  },
  sync: (handle, done) => {
    fdatasync(handle, (error) => {
      if (error !== null) return done(error);
      // A file that was removed takes writes until it is closed.
      fstat(handle, (problem, stats) => done(problem ?? (stats.nlink === 0 ? removed() : null)));
    });
  },
  truncate: (handle, length) => {
    if (fstatSync(handle).size > length) ftruncateSync(handle, length);
  },
  close: (handle) => closeSync(handle),
  // Unlike rename, link fails if the target exists.
  rename: (from, to) => {
    linkSync(from, to);
    unlinkSync(from);
  },
  syncNames: (file, done) => {
    open(path.dirname(file), "r", (error, folder) => {
      if (error !== null) return done(error);
      fsync(folder, (problem) => close(folder, () => done(problem)));
    });
  },
  remove: (file) => unlinkSync(file),
};

function removed(): Error {
  return Object.assign(new Error("the recording was removed"), { code: "ENOENT" });
}

/** Throws ENOTDIR if a link is planted at the name of the day's, month's or year's folder. */
function requireOwnDay(folder: string): void {
  for (let each = folder; /^\d{2,4}$/.test(path.basename(each)); each = path.dirname(each))
    if (!lstatSync(each).isDirectory())
      throw Object.assign(new Error("a folder of recordings is a link"), { code: "ENOTDIR" });
}

/** Syncs the names of new folders, once a day. */
function syncUpTo(top: string, folder: string): void {
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  if (folder !== top) syncUpTo(top, path.dirname(folder));
}

/** The system's error code, such as ENOSPC. The message would contain the file's name. */
export function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error instanceof Error ? error.message : "unknown");
}
