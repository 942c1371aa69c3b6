import { open, stat } from "node:fs/promises";
import path from "node:path";
import { parseHeader, type RecordedFacts } from "../format/asciicast.ts";
import type { RecordingHead } from "../format/chain.ts";
import { parseHeadLine } from "../format/signed-head.ts";
import { findRecordings } from "./find-recordings.ts";
import { firstLineOf } from "./recording-lines.ts";

/** A finished recording's first and last line say this; it is not verified here. */
export interface StoredRecording {
  readonly file: string;
  readonly facts: RecordedFacts;
  readonly head: RecordingHead;
  readonly bytes: number;
  readonly endedMs: number;
}

/** Recordings whose lines are remembered. Past it all lines are read again for each list. */
export const MAX_INDEXED = 50_000;
/** A head is a few hundred bytes. */
const HEAD_BYTES = 8 * 1024;
const READ_AT_ONCE = 16;

/** The finished recordings of a folder. Their files do not change, so that each is read once. */
export class RecordingIndex {
  readonly #folder: string;
  readonly #maxIndexed: number;
  /** Undefined unless the file is a finished recording. */
  #known = new Map<string, StoredRecording | undefined>();

  constructor(folder: string, maxIndexed: number = MAX_INDEXED) {
    this.#folder = folder;
    this.#maxIndexed = maxIndexed;
  }

  /** Those that are there now, in no order. Rejects with RecordingFileError. */
  async list(): Promise<readonly StoredRecording[]> {
    const files = await findRecordings(this.#folder);
    const known = this.#known.size > this.#maxIndexed ? new Map() : this.#known;
    const next = new Map<string, StoredRecording | undefined>();
    for (let at = 0; at < files.length; at += READ_AT_ONCE) {
      const batch = files.slice(at, at + READ_AT_ONCE);
      const read = await Promise.all(
        batch.map(async (file) => (known.has(file) ? known.get(file) : await readStored(file))),
      );
      for (const [index, file] of batch.entries()) next.set(file, read[index]);
    }
    this.#known = next;
    return [...next.values()].filter((each) => each !== undefined);
  }
}

/** Undefined for another file, one of a newer format, and one that was deleted meanwhile. */
async function readStored(file: string): Promise<StoredRecording | undefined> {
  try {
    const { size: bytes, mtimeMs: endedMs } = await stat(file);
    const facts = parseHeader(await firstLineOf(file))?.sluice;
    const head = parseHeadLine(await lastLineOf(file, bytes));
    const isOwn = facts !== undefined && path.basename(file) === `${facts.session}.cast`;
    return isOwn && head !== undefined ? { file, facts, head, bytes, endedMs } : undefined;
  } catch {
    return undefined;
  }
}

async function lastLineOf(file: string, size: number): Promise<string> {
  const handle = await open(file);
  try {
    const from = Math.max(0, size - HEAD_BYTES);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - from), 0, size - from, from);
    return buffer.toString("utf8", 0, bytesRead).trimEnd().split("\n").at(-1) ?? "";
  } finally {
    await handle.close();
  }
}
