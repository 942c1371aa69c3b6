import { randomUUID } from "node:crypto";
import type { OutputLine } from "../format/output-line.ts";
import { codeOf, type Disk } from "./disk.ts";

/**
 * The name of an unfinished recording. The next search finishes it if no such writer lives, or if there
 * is none, because the disk refused lines with `code`.
 */
export function partOf(file: string, writer: string | undefined, code = ""): string {
  const prefix = /^[A-Z0-9]+$/.test(code) ? `${code}-` : "";
  return `${file}.${writer ?? prefix + randomUUID()}.part`;
}

/**
 * An append-only file. Lines that could not be written are kept and written before later ones, so that
 * the file is always a prefix of the appended lines.
 */
export class RecordingFile {
  readonly #disk: Disk;
  readonly #file: string;
  readonly #part: string;
  readonly #handle: number;
  #position = 0;
  #unwritten: Uint8Array[] = [];
  #lent: OutputLine[] = [];
  #isDirty = false;
  #isSyncing = false;
  #isClosed = false;

  /** Creates `part`, which gets the name `file` when finished. Throws the system's error. */
  constructor(disk: Disk, file: string, part: string) {
    this.#disk = disk;
    this.#file = file;
    this.#part = part;
    this.#handle = disk.create(part);
  }

  /** Appends a line with its end. The file keeps the memory until it is written, then frees `lent`. */
  append(line: Uint8Array, lent?: OutputLine): void {
    this.#unwritten.push(line);
    if (lent !== undefined) this.#lent.push(lent);
  }

  get hasUnwritten(): boolean {
    return this.#unwritten.length > 0;
  }

  /** Writes the appended lines. If it throws the system's error, they are kept. */
  flush(): void {
    const [first, ...others] = this.#unwritten;
    if (first === undefined) return;
    const bytes = others.length === 0 ? first : Buffer.concat(this.#unwritten);
    try {
      this.#disk.write(this.#handle, bytes, this.#position);
    } catch (error) {
      // Many files may wait for one disk, each with little: only that stays in memory.
      this.#unwritten = [bytes === first && this.#lent.length > 0 ? Buffer.from(bytes) : bytes];
      this.#free();
      throw error;
    }
    this.#position += bytes.byteLength;
    this.#unwritten = [];
    this.#free();
    this.#isDirty = true;
  }

  #free(): void {
    for (const line of this.#lent.splice(0)) line.free();
  }

  /** Overwrites the file's start with text of the same length. */
  rewriteStart(text: string): void {
    this.#disk.write(this.#handle, Buffer.from(text, "utf8"), 0);
  }

  /** Syncs written data to the disk. Does nothing while another sync is running. */
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

  /** Syncs the file, gives it its final name, and closes it. */
  finish(done: (error: Error | null) => void): void {
    this.#disk.sync(this.#handle, (error) => {
      let failure = error;
      try {
        if (failure === null) this.#disk.rename(this.#part, this.#file);
      } catch (problem) {
        failure = problem as Error;
      }
      this.close();
      if (failure === null) return this.#disk.syncNames(this.#file, done);
      this.#giveUp(codeOf(failure));
      done(failure);
    });
  }

  /**
   * Closes the file unfinished, without a partly written line. A search finishes it later, with the end
   * `write-failed`. `code`: the system's code, such as ENOSPC.
   */
  leave(code: string): void {
    try {
      this.#disk.truncate(this.#handle, this.#position);
    } catch {
      // The search removes the partial line.
    }
    this.close();
    this.#giveUp(code);
  }

  #giveUp(code: string): void {
    try {
      this.#disk.rename(this.#part, partOf(this.#file, undefined, code));
    } catch {
      // With this writer's name, the next start finishes it.
    }
  }

  /** Removes the file, because the session did not start. */
  discard(): void {
    this.close();
    this.#disk.remove(this.#part);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // While a sync is running, its callback closes the descriptor.
    if (!this.#isSyncing) this.#disk.close(this.#handle);
  }
}
