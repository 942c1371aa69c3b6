import { readFile, stat } from "node:fs/promises";

/** A file that the configuration names, and its text. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** Of this process. A worker leaves its successors the files that it started with, and those that were valid since. */
const lastRead = new Map<string, string>();
let instead: ReadonlyMap<string, string> | undefined;
let onRight: ((files: readonly NamedText[]) => void) | undefined;

export interface NamedFileOptions {
  readonly maxBytes?: number;
  /** UTF-8 unless given. */
  readonly decode?: (bytes: Buffer) => string;
}

/** Reads a file that the configuration names, at each start. Rejects with the error of the file system, or for one of more than `maxBytes`. */
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

/** Records files that were read again after the start and are valid. */
export function namedFilesAreRight(files: readonly NamedText[]): void {
  for (const { name, text } of files) lastRead.set(name, text);
  onRight?.(filesRead());
}

/** Runs a start that reads those files from memory. Files that are not among them come from the disk. */
export async function readingInstead<T>(files: readonly NamedText[], start: () => Promise<T>): Promise<T> {
  instead = new Map(files.map(({ name, text }) => [name, text]));
  try {
    return await start();
  } finally {
    instead = undefined;
  }
}

/** After a start, whose files were valid: calls the observer with all of them, and again whenever one has changed. */
export function observeRightFiles(observer: (files: readonly NamedText[]) => void): void {
  onRight = observer;
  observer(filesRead());
}

function filesRead(): NamedText[] {
  return Array.from(lastRead, ([name, text]) => ({ name, text }));
}
