import { readFile, stat } from "node:fs/promises";
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

interface NamedFileOptions {
  readonly maxBytes?: number;
  /** UTF-8 by default. */
  readonly decode?: (bytes: Buffer) => string;
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

async function readFromDisk(
  name: string,
  { maxBytes = Number.POSITIVE_INFINITY, decode }: NamedFileOptions,
): Promise<string> {
  const { size } = maxBytes < Number.POSITIVE_INFINITY ? await stat(name) : { size: 0 };
  if (size > maxBytes) throw new Error(`the file has ${size} bytes, at most ${maxBytes} are read`);
  return decode === undefined ? readFile(name, "utf8") : decode(await readFile(name));
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
