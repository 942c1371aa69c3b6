import { promises, readFileSync, statSync } from "node:fs";
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

/** A configuration, or a file of certificates, tokens or keys that it names. Past it, it is refused. */
const MAX_NAMED_FILE_BYTES = 16 * 1024 * 1024;
const READ_BYTES = 64 * 1024;

interface NamedFileOptions {
  readonly maxBytes?: number;
  /** UTF-8 by default. */
  readonly decode?: (bytes: Buffer) => string;
  /** Reads a small file at once: the threads that read others take a client longer to start. */
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
  const bytes = isAtStart && isSmallFile(name) ? readFileSync(name) : await readUpTo(name, maxBytes);
  return decode === undefined ? bytes.toString("utf8") : decode(bytes);
}

/**
 * Reads a file, a pipe or a device. Rejects with the file system's error, or if there is more than
 * `maxBytes`.
 */
export async function readUpTo(name: string, maxBytes = MAX_NAMED_FILE_BYTES): Promise<Buffer> {
  const file = await promises.open(name);
  try {
    const parts: Buffer[] = [];
    let left = maxBytes;
    for (;;) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(READ_BYTES));
      if (bytesRead === 0) return Buffer.concat(parts);
      left -= bytesRead;
      if (left < 0) throw new Error(`the file has more than ${maxBytes} bytes`);
      parts.push(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
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
