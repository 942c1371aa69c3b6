import { lstat, open } from "node:fs/promises";
import path from "node:path";
import { dayOfSession } from "../../sessions/session-id.ts";
import { parseHeader, type RecordedFacts } from "../format/asciicast.ts";
import type { RecordingHead } from "../format/chain.ts";
import { parseHeadLine } from "../format/signed-head.ts";
import { recordingFileOf } from "../recorded-facts.ts";
import { findRecordings } from "./find-recordings.ts";
import { firstLineOf } from "./recording-lines.ts";

/** A finished recording's facts, from its first and last line; in lists without its command. Not verified here. */
export interface StoredRecording {
  readonly file: string;
  readonly facts: RecordedFacts;
  readonly head: RecordingHead;
  readonly bytes: number;
  readonly endedMs: number;
}

/** Recordings of a folder that are listed, and whose lines are remembered. Past it the oldest are not listed. */
const MAX_INDEXED = 50_000;
/** The end of a file that contains its head, which is a few hundred bytes. */
const HEAD_BYTES = 8 * 1024;
/** A disk that hangs keeps a thread of Node.js for each; there are four. */
const READ_AT_ONCE = 2;

export interface FolderList {
  /** Sorted by namespace and id. */
  readonly recordings: readonly StoredRecording[];
  /** False if the folder has older recordings. */
  readonly isComplete: boolean;
}

/** Lists a folder's finished recordings. Their files do not change, so each is read once. */
export class RecordingIndex {
  readonly #folder: string;
  readonly #maxIndexed: number;
  #known = new Map<string, StoredRecording>();
  /** Files that lists and requests have read so far: while it rises, the disk answers. */
  filesRead = 0;
  #running: Promise<FolderList> | undefined;
  #following: Promise<FolderList> | undefined;

  constructor(folder: string, maxIndexed: number = MAX_INDEXED) {
    this.#folder = folder;
    this.#maxIndexed = maxIndexed;
  }

  /** The present recordings. Rejects with RecordingFileError. */
  list(): Promise<FolderList> {
    if (this.#running === undefined) return this.#run();
    // The running list may have missed a recording that ended since then, so later callers share the
    // next list.
    this.#following ??= this.#running.catch(() => {}).then(() => this.#run());
    return this.#following;
  }

  /**
   * The recordings with this session id: several if folders hold copies. An id with a day leads to
   * its file, or to a copy that was listed. Rejects with RecordingFileError.
   */
  async find(session: string): Promise<readonly StoredRecording[]> {
    const day = dayOfSession(session);
    if (day !== undefined) {
      const own = await readStored(path.join(this.#folder, recordingFileOf(session, day)));
      return own === undefined ? await this.#copiesOf(session) : [own];
    }
    const files = await findRecordings(this.#folder);
    return await this.#each(files.filter((file) => path.basename(file) === `${session}.cast`));
  }

  async #copiesOf(session: string): Promise<readonly StoredRecording[]> {
    const listed = Array.from(this.#known.values()).filter(({ facts }) => facts.session === session);
    return await this.#each(listed.map(({ file }) => file));
  }

  async #each(files: readonly string[]): Promise<readonly StoredRecording[]> {
    const found = await Promise.all(files.map((file) => readStored(file)));
    return found.filter((each) => each !== undefined);
  }

  #run(): Promise<FolderList> {
    this.#following = undefined;
    const running = this.#list().finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }

  async #list(): Promise<FolderList> {
    const all = await findRecordings(this.#folder);
    const files = new Set(all.slice(-this.#maxIndexed));
    const isComplete = files.size === all.length;
    const kept = Array.from(this.#known.values()).filter(({ file }) => files.delete(file));
    // Known recordings are already in order, which makes sorting fast.
    const recordings = [...kept, ...(await this.#all([...files]))].sort(byName);
    this.#known = new Map(recordings.map((each) => [each.file, each]));
    return { recordings, isComplete };
  }

  async #all(files: readonly string[]): Promise<readonly StoredRecording[]> {
    const found: StoredRecording[] = [];
    for (let at = 0; at < files.length; at += READ_AT_ONCE) {
      const batch = files.slice(at, at + READ_AT_ONCE);
      const read = await Promise.all(batch.map(async (file) => this.#known.get(file) ?? readStored(file)));
      this.filesRead += batch.length;
      for (const each of read) if (each !== undefined) found.push(withoutCommand(each));
    }
    return found;
  }
}

/**
 * As lists remember a recording: they show no command, which may have a megabyte. The same object if
 * it has none.
 */
export function withoutCommand(stored: StoredRecording): StoredRecording {
  const { facts } = stored;
  return facts.command.length === 0 ? stored : { ...stored, facts: { ...facts, command: [] } };
}

function byName({ facts: one }: StoredRecording, { facts: other }: StoredRecording): number {
  if (one.namespace !== other.namespace) return one.namespace < other.namespace ? -1 : 1;
  return one.session < other.session ? -1 : one.session > other.session ? 1 : 0;
}

/** Undefined for a file that is not a finished recording, has a newer format or was deleted meanwhile. */
async function readStored(file: string): Promise<StoredRecording | undefined> {
  try {
    const entry = await lstat(file);
    if (!entry.isFile()) return undefined;
    const { size: bytes, mtimeMs: endedMs } = entry;
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
