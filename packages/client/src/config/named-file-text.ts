import { constants, promises, readFileSync, statSync } from "node:fs";
import type { ConfigurationProblem } from "./configuration-error.ts";

/** A file named in the configuration, and its text. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** A worker passes the files that it started with, and later valid ones, to its successors. */
const lastRead = new Map<string, string>();
let instead: ReadonlyMap<string, string> | undefined;
let onRight: ((files: readonly NamedText[]) => void) | undefined;

/**
 * A configuration, or a file of certificates, tokens, keys or results that it or a flag names. Past
 * it, it is refused.
 */
const MAX_NAMED_FILE_BYTES = 16 * 1024 * 1024;
const READ_BYTES = 64 * 1024;

/** Names of open descriptors, such as a shell's `<(...)`. */
const DESCRIPTOR = /^\/(?:dev|proc\/(?:self|\d+))\/(?:fd\/\d+|stdin)$/;

interface NamedFileOptions {
  readonly maxBytes?: number;
  /** UTF-8 by default. */
  readonly decode?: (bytes: Buffer) => string;
  /**
   * Waits for the writer of a named pipe, and reads a small file at once: the threads that read
   * others take a client longer to start.
   */
  readonly isAtStart?: boolean;
}

/**
 * Reads a file named in the configuration, at each start. Rejects with the file system's error, or
 * if the file exceeds `maxBytes`.
 */
export async function readNamedFile(name: string, options: NamedFileOptions = {}): Promise<string> {
  const text = instead?.get(name) ?? (await readFromDisk(name, options));
  if (onRight === undefined) lastRead.set(name, text);
  return text;
}

async function readFromDisk(name: string, options: NamedFileOptions): Promise<string> {
  const { maxBytes, decode, isAtStart = false } = options;
  const bytes =
    isAtStart && isSmallFile(name) ? readFileSync(name) : await readUpTo(name, maxBytes, isAtStart);
  return decode === undefined ? bytes.toString("utf8") : decode(bytes);
}

/**
 * Reads a file, a device or an open pipe. Rejects with the file system's error, for more than
 * `maxBytes`, and for a named pipe unless `waits`.
 */
export async function readUpTo(
  name: string,
  maxBytes = MAX_NAMED_FILE_BYTES,
  waits = false,
): Promise<Buffer> {
  // A named pipe without a writer would hold a thread, and so the process, for ever.
  const mayWait = waits || DESCRIPTOR.test(name);
  const file = await promises.open(name, mayWait ? "r" : constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = await file.stat();
    if (!mayWait && stats.isFIFO()) throw fileError("open", "ESPIPE", "is a named pipe");
    if (stats.size > maxBytes) throw tooLarge(maxBytes);
    const parts: Buffer[] = [];
    let left = maxBytes;
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(READ_BYTES));
      if (bytesRead === 0) return Buffer.concat(parts);
      left -= bytesRead;
      if (left < 0) throw tooLarge(maxBytes);
      parts.push(buffer.subarray(0, bytesRead));
    }
  } catch (error) {
    throw Object.assign(error as Error, { path: name });
  } finally {
    await file.close();
  }
}

function tooLarge(maxBytes: number): Error {
  return fileError("read", "ERR_FS_FILE_TOO_LARGE", `the file has more than ${maxBytes} bytes`);
}

function fileError(syscall: string, code: string, message: string): Error {
  return Object.assign(new Error(message), { syscall, code });
}

function isSmallFile(name: string): boolean {
  try {
    const stats = statSync(name);
    return stats.isFile() && stats.size <= READ_BYTES;
  } catch {
    return false;
  }
}

/** Records valid files that were read again after the start. */
export function namedFilesAreRight(files: readonly NamedText[]): void {
  for (const { name, text } of files) lastRead.set(name, text);
  onRight?.(filesRead());
}

/** Runs a start with these files from memory; other files come from the disk. */
export async function readingInstead<T>(files: readonly NamedText[], start: () => Promise<T>): Promise<T> {
  instead = new Map(files.map(({ name, text }) => [name, text]));
  try {
    return await start();
  } finally {
    instead = undefined;
  }
}

/**
 * Call it after a start with valid files: passes all of them to the observer now, and again after
 * each change.
 */
export function observeRightFiles(observer: (files: readonly NamedText[]) => void): void {
  onRight = observer;
  observer(filesRead());
}

function filesRead(): NamedText[] {
  return Array.from(lastRead, ([name, text]) => ({ name, text }));
}

/** The required content of a file. `text` means at least one character. */
export type FileContent =
  | "certificates"
  | "private key"
  | "audit policy"
  | "authentication configuration"
  | "webhook kubeconfig"
  | "kubeconfig"
  | "static tokens"
  | "session keys"
  | "signing key"
  | "text";

/** A file, and the field or flag that names it, for `checkNamedFiles`. */
export interface NamedFile extends Omit<ConfigurationProblem, "message"> {
  readonly file: string;
  readonly content: FileContent;
  /** For a private key: the file of its certificate. */
  readonly certificateFile?: string | undefined;
}
