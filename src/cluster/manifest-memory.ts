import type { FileReading, ForeignItem, FoundItem, ManifestFile, ReadItem } from "./manifests.ts";

/** The result of reading one part of a file. Lines are counted from the start of the part. */
interface KeptPart {
  readonly lineBreaks: number;
  readonly found: readonly FoundItem[];
  readonly foreign: readonly ForeignItem[];
}

interface KeptFile {
  readonly text: string;
  readonly reading: FileReading;
  /** The parts by their text. After a reading with problems, the parts of the reading before it. */
  readonly parts: ReadonlyMap<string, KeptPart>;
}

/** A file, and the parts of it that must be read. */
interface ComparedFile {
  readonly file: ManifestFile;
  readonly parts: readonly string[];
  /**
   * Texts of the parts that were not read before, in order; all parts if the whole file must be
   * read.
   */
  readonly unread: readonly string[];
}

interface Comparison {
  readonly files: readonly ManifestFile[];
  readonly compared: readonly ComparedFile[];
  /** The changed files, each with only the documents that were not read before. */
  readonly changed: readonly ManifestFile[];
  /** The items that these documents replace, by digest. */
  readonly known: ReadonlyMap<string, ReadItem>;
}

/**
 * Remembers the last reading of each file, so that a reload parses only changed documents and
 * decodes only changed objects. Keeps the files' texts in memory.
 */
export class ManifestMemory {
  #files: ReadonlyMap<string, KeptFile> = new Map();

  /** Finds the documents that changed since the last reading, in steps between other work. */
  *comparing(files: readonly ManifestFile[]): Generator<void, Comparison> {
    const compared: ComparedFile[] = [];
    const known = new Map<string, ReadItem>();
    for (const file of files) {
      const kept = this.#files.get(file.name);
      if (kept?.text === file.text) continue;
      const parts = yield* partsOf(file.text);
      const unread: string[] = [];
      const present = new Set<string>();
      for (const text of parts) {
        if (kept?.parts.has(text) !== true) unread.push(text);
        present.add(text);
        yield;
      }
      compared.push({ file, parts, unread });
      for (const [text, part] of kept?.parts ?? []) {
        if (!present.has(text)) addItems(known, part);
        yield;
      }
    }
    return comparisonOf(files, compared, known);
  }

  /**
   * The same comparison, but with each file whole in which the reading found problems: only then
   * are the reported lines right. Undefined if no file has problems.
   */
  whole(comparison: Comparison, readings: readonly FileReading[]): Comparison | undefined {
    const { files, compared } = comparison;
    const isBroken = ({ parts, unread }: ComparedFile, index: number) =>
      unread.length < parts.length && (readings[index]?.problems.length ?? 0) > 0;
    if (!compared.some(isBroken)) return undefined;
    const known = new Map(comparison.known);
    const again = compared.map((each, index) => {
      if (!isBroken(each, index)) return each;
      for (const part of this.#files.get(each.file.name)?.parts.values() ?? []) addItems(known, part);
      return { ...each, unread: each.parts };
    });
    return comparisonOf(files, again, known);
  }

  /**
   * Keeps the readings of changed files, and forgets files that are gone. Returns the readings of
   * all files, in the files' order.
   */
  *keeping(
    { files, compared }: Comparison,
    changed: readonly FileReading[],
  ): Generator<void, readonly FileReading[]> {
    const kept = new Map<string, KeptFile>();
    for (const [index, each] of compared.entries()) {
      const reading = changed[index];
      if (reading === undefined) throw new Error(`${each.file.name} has not been read`);
      kept.set(each.file.name, yield* joined(each, reading, this.#files.get(each.file.name)?.parts));
    }
    const all = files.map(({ name }): [string, KeptFile] => {
      const file = kept.get(name) ?? this.#files.get(name);
      if (file === undefined) throw new Error(`${name} has not been read`);
      return [name, file];
    });
    this.#files = new Map(all);
    return all.map(([, { reading }]) => reading);
  }
}

function addItems(known: Map<string, ReadItem>, { found }: KeptPart): void {
  for (const { digest, object, warnings } of found) known.set(digest, { object, warnings });
}

function comparisonOf(
  files: readonly ManifestFile[],
  compared: readonly ComparedFile[],
  known: ReadonlyMap<string, ReadItem>,
): Comparison {
  const changed = compared.map(({ file: { name }, unread }) => ({ name, text: unread.join("") }));
  return { files, compared, changed, known };
}

/** Characters that end a line in YAML; undefined is the start of the file. */
const LINE_ENDS: ReadonlySet<string | undefined> = new Set([undefined, "\n", "\r", "\u2028", "\u2029"]);
const DOCUMENT_START = /(?<=\n)---(?=[ \t\r\n]|$)/g;

/**
 * A directive also applies to the documents after it, so a file with one is not split. Few files
 * contain a `%`, and searching for one character is fast.
 */
function* hasDirective(text: string): Generator<void, boolean> {
  for (let at = text.indexOf("%"); at !== -1; at = text.indexOf("%", at + 1)) {
    if (LINE_ENDS.has(text[at - 1])) return true;
    yield;
  }
  return false;
}

/**
 * Cuts a file's text before each line that starts a document. Such a line always ends the document
 * before it.
 */
function* partsOf(text: string): Generator<void, string[]> {
  if (yield* hasDirective(text)) return [text];
  const parts: string[] = [];
  let start = 0;
  for (const { index } of text.matchAll(DOCUMENT_START)) {
    parts.push(text.slice(start, index));
    start = index;
    yield;
  }
  parts.push(text.slice(start));
  return parts;
}

/** Joins a file's new parts and its remembered parts. */
function* joined(
  { file: { name, text }, parts, unread }: ComparedFile,
  reading: FileReading,
  before: ReadonlyMap<string, KeptPart> = new Map(),
): Generator<void, KeptFile> {
  if (reading.problems.length > 0) return { text, reading, parts: before };
  const read = unread.length === 0 ? new Map<string, KeptPart>() : yield* readParts(unread, reading);
  const kept = new Map<string, KeptPart>();
  const found: FoundItem[] = [];
  const foreign: ForeignItem[] = [];
  let line = 0;
  for (const part of parts) {
    const known = read.get(part) ?? before.get(part);
    if (known === undefined) throw new Error(`a document of ${name} has not been read`);
    kept.set(part, known);
    for (const item of known.found) found.push({ ...item, line: line + item.line });
    foreign.push(...known.foreign);
    line += known.lineBreaks;
    yield;
  }
  return { text, reading: { name, found, problems: [], foreign }, parts: kept };
}

/** Assigns the items of a reading to parts: an item starts on a line of its document. */
function* readParts(
  unread: readonly string[],
  { found, foreign }: FileReading,
): Generator<void, Map<string, KeptPart>> {
  const read = new Map<string, KeptPart>();
  const [items, others] = [found.values(), foreign.values()];
  const takenTo = <Item extends { readonly line: number }>(from: ArrayIterator<Item>) => {
    let next = from.next();
    return (last: number, before: number): Item[] => {
      const taken: Item[] = [];
      for (; next.done !== true && next.value.line <= last; next = from.next())
        taken.push({ ...next.value, line: next.value.line - before });
      return taken;
    };
  };
  const [itemsTo, othersTo] = [takenTo(items), takenTo(others)];
  let before = 0;
  for (const [index, text] of unread.entries()) {
    const lineBreaks = lineBreaksOf(text);
    // The last part may end without a line break.
    const last = index === unread.length - 1 ? Number.POSITIVE_INFINITY : before + lineBreaks;
    read.set(text, { lineBreaks, found: itemsTo(last, before), foreign: othersTo(last, before) });
    before += lineBreaks;
    yield;
  }
  return read;
}

function lineBreaksOf(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}
