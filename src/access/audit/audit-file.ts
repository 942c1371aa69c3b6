import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import path from "node:path";

interface AuditFileOptions {
  readonly path: string;
  /** The file is rotated before it would exceed this size. */
  readonly maxBytes: number;
  /** Rotated files are deleted after this many days; 0 means never. */
  readonly maxAgeDays: number;
  /** The number of rotated files to keep; 0 means all. */
  readonly maxBackups: number;
}

const DAY_MS = 86_400_000;
/** Only the owner may read the file: events name users and their actions. */
const OWNER_ONLY = 0o600;

/**
 * Writes events as JSON lines, rotated as `name-<time>.ext` like kube-apiserver's log backend. Only
 * the owner may read the file, even if it existed before. Removes a line that was cut by a full
 * disk.
 */
export class AuditFile {
  readonly #options: AuditFileOptions;
  readonly #now: () => Date;
  #handle: FileHandle | undefined;
  #bytes = 0;

  constructor(options: AuditFileOptions, now: () => Date = () => new Date()) {
    this.#options = options;
    this.#now = now;
  }

  /**
   * Throws the file system's error, with none of these events in the file. Allows one call at a
   * time.
   */
  async append(lines: readonly string[]): Promise<void> {
    const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
    if (this.#handle === undefined) await this.#open();
    if (this.#bytes > 0 && this.#bytes + bytes.byteLength > this.#options.maxBytes) await this.#rotate();
    const handle = this.#handle as unknown as FileHandle;
    let written = 0;
    try {
      while (written < bytes.byteLength) {
        written += (await handle.write(bytes, written, bytes.byteLength - written, null)).bytesWritten;
      }
      this.#bytes += bytes.byteLength;
    } catch (error) {
      // A device cannot be truncated.
      if (written > 0) await handle.truncate(this.#bytes).catch(() => {});
      await this.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close().catch(() => {});
  }

  async #open(): Promise<void> {
    await mkdir(path.dirname(this.#options.path), { recursive: true, mode: 0o700 });
    const handle = await openOwn(this.#options.path, APPEND);
    try {
      const found = await handle.stat();
      // The mode given to open applies only to new files. A device or pipe keeps its own.
      if (found.isFile() && (found.mode & 0o777) !== OWNER_ONLY) await handle.chmod(OWNER_ONLY);
      this.#bytes = found.size;
    } catch (error) {
      await handle.close();
      throw error;
    }
    this.#handle = handle;
  }

  async #rotate(): Promise<void> {
    await this.close();
    const { dir, name, ext } = path.parse(this.#options.path);
    const stamp = this.#now().toISOString().replaceAll(":", "-").replace("Z", "");
    let backup = path.join(dir, `${name}-${stamp}${ext}`);
    for (let number = 1; await exists(backup); number += 1)
      backup = path.join(dir, `${name}-${stamp}.${number}${ext}`);
    await rename(this.#options.path, backup);
    await this.#open();
    await this.#prune(dir, `${name}-`, ext);
  }

  /** Never fails: events go on being stored while an old file cannot be deleted. */
  async #prune(folder: string, prefix: string, suffix: string): Promise<void> {
    const { maxAgeDays, maxBackups } = this.#options;
    const isBackup = (name: string) =>
      name.startsWith(prefix) && name.endsWith(suffix) && /^\d{4}-\d\d-\d\dT/.test(name.slice(prefix.length));
    // The name contains the time, so the newest sorts last.
    const backups = (await readdir(folder).catch(() => [])).filter(isBackup).toSorted();
    const surplus = maxBackups === 0 ? [] : backups.slice(0, Math.max(0, backups.length - maxBackups));
    for (const name of backups) {
      const file = path.join(folder, name);
      const endedMs = (await stat(file).catch(() => undefined))?.mtimeMs ?? Number.POSITIVE_INFINITY;
      const isOld = maxAgeDays > 0 && this.#now().getTime() - endedMs > maxAgeDays * DAY_MS;
      if (isOld || surplus.includes(name)) await rm(file, { force: true }).catch(() => {});
    }
  }
}

const APPEND = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT;

/** Follows a link of this user or root alone: one of another user may lead the log anywhere. */
async function openOwn(file: string, flags: number): Promise<FileHandle> {
  try {
    return await open(file, flags | constants.O_NOFOLLOW, OWNER_ONLY);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ELOOP") throw error;
    const { uid } = await lstat(file);
    if (uid !== 0 && uid !== process.getuid?.()) throw error;
    return await open(file, flags, OWNER_ONLY);
  }
}

async function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}
