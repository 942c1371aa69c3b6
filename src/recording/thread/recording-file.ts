import type { Disk } from "./disk.ts";

/** An unfinished recording, of this writer. */
export function partOf(file: string, writer: string): string {
  return `${file}.${writer}.part`;
}

/** The recording and the writer of an unfinished one; undefined for another file. */
export function writerOf(part: string): { readonly file: string; readonly writer: string } | undefined {
  const [, file, writer] = /^(.+\.cast)\.([\w-]+)\.part$/.exec(part) ?? [];
  return file === undefined || writer === undefined ? undefined : { file, writer };
}

/**
 * A file that is appended to. Text that could not be written is kept and written first later, so that
 * the file is always a beginning of what was appended.
 */
export class RecordingFile {
  readonly #disk: Disk;
  readonly #file: string;
  readonly #part: string;
  readonly #handle: number;
  #position = 0;
  #unwritten: string[] = [];
  #isDirty = false;
  #isSyncing = false;
  #isClosed = false;

  /** Creates the unfinished recording `part` of `file`. Throws the system's error. */
  constructor(disk: Disk, file: string, part: string) {
    this.#disk = disk;
    this.#file = file;
    this.#part = part;
    this.#handle = disk.create(part);
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

  /** Brings everything to the disk, gives the file its final name there, and closes it. */
  finish(done: (error: Error | null) => void): void {
    this.#disk.sync(this.#handle, (error) => {
      let failure = error;
      try {
        if (failure === null) this.#disk.rename(this.#part, this.#file);
      } catch (problem) {
        failure = problem as Error;
      }
      this.close();
      if (failure === null) this.#disk.syncNames(this.#file, done);
      else done(failure);
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
    this.#disk.remove(this.#part);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // A descriptor that is being synced stays open until then.
    if (!this.#isSyncing) this.#disk.close(this.#handle);
  }
}
