import type { Disk } from "./disk.ts";

/** An unfinished recording ends in this. */
export const PART_SUFFIX = ".part";

/**
 * A file that is appended to. Text that could not be written is kept and written first later, so that
 * the file is always a beginning of what was appended.
 */
export class RecordingFile {
  readonly #disk: Disk;
  readonly #file: string;
  readonly #handle: number;
  #position = 0;
  #unwritten: string[] = [];
  #isDirty = false;
  #isSyncing = false;
  #isClosed = false;

  /** Creates `file` with PART_SUFFIX, or continues an open one. Throws the system's error. */
  constructor(disk: Disk, file: string, open?: { readonly handle: number; readonly position: number }) {
    this.#disk = disk;
    this.#file = file;
    this.#handle = open?.handle ?? disk.create(file + PART_SUFFIX);
    this.#position = open?.position ?? 0;
  }

  append(line: string): void {
    this.#unwritten.push(line, "\n");
  }

  get hasUnwritten(): boolean {
    return this.#unwritten.length > 0;
  }

  /** Writes what was appended. Throws the system's error; the text is kept. */
  flush(): void {
    if (this.#unwritten.length === 0) return;
    const bytes = Buffer.from(this.#unwritten.join(""), "utf8");
    this.#disk.write(this.#handle, bytes, this.#position);
    this.#position += bytes.byteLength;
    this.#unwritten = [];
    this.#isDirty = true;
  }

  /** Replaces the file's first bytes by as many others. */
  rewriteStart(text: string): void {
    this.#disk.write(this.#handle, Buffer.from(text, "utf8"), 0);
  }

  /** Brings what was written to the disk; one call at a time. */
  sync(onError: (error: Error) => void): void {
    if (!this.#isDirty || this.#isSyncing || this.#isClosed) return;
    this.#isDirty = false;
    this.#isSyncing = true;
    this.#disk.sync(this.#handle, (error) => {
      this.#isSyncing = false;
      if (this.#isClosed) this.#disk.close(this.#handle);
      if (error !== null) onError(error);
    });
  }

  /** Brings everything to the disk, gives the file its final name, and closes it. */
  finish(done: (error: Error | null) => void): void {
    this.#disk.sync(this.#handle, (error) => {
      let failure = error;
      try {
        if (failure === null) this.#disk.rename(this.#file + PART_SUFFIX, this.#file);
      } catch (problem) {
        failure = problem as Error;
      }
      this.close();
      done(failure);
    });
  }

  /** Leaves the unfinished file as it is, without a line that was written in part. */
  leave(): void {
    try {
      this.#disk.truncate(this.#handle, this.#position);
    } catch {
      // The next start cuts it.
    }
    this.close();
  }

  /** For a session that did not start. */
  discard(): void {
    this.close();
    this.#disk.remove(this.#file + PART_SUFFIX);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // A descriptor that is being synced stays open until then.
    if (!this.#isSyncing) this.#disk.close(this.#handle);
  }
}
