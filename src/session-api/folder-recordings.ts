import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { matcherOf } from "../api/read-only-server/answer-resource.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import type { FolderList, RecordingIndex, StoredRecording } from "../recording/reading/recording-index.ts";
import { compareKeys, type ObjectKey } from "./polled-feed.ts";
import { RECORDINGS, type RecordingObject, recordingObjectOf } from "./recording-object.ts";

/**
 * Bytes of a recording's content in one answer of another replica or of the store. Past it another
 * request gets the rest.
 */
export const RECORDING_PART_BYTES: number = 1024 * 1024;
/** How long the folder may take to answer a request of the API. Past it: 503. */
const MAX_FOLDER_WAIT_MS = 10_000;
/** Requests that the folder's disk carries out at once. Past it they wait: one that hangs keeps a thread of Node.js. */
const MAX_FOLDER_REQUESTS = 2;

/** The selectors of a list request, and the page that it requests. */
export interface RecordingsQuery {
  readonly namespace?: string | undefined;
  readonly labels: string;
  readonly fields: string;
  /** The previous page's last recording. */
  readonly after?: ObjectKey | undefined;
  /** 0: no limit. */
  readonly limit: number;
}

export interface RecordingsPage {
  /** Ordered by namespace and name; without command lines. */
  readonly items: readonly RecordingObject[];
  /** How many recordings follow this page. */
  readonly remaining: number;
  /** The folder has more recordings than are listed; the oldest are missing. */
  readonly isCut?: boolean | undefined;
}

/**
 * The finished recordings in this replica's folder; empty if it has none. Methods reject with
 * RecordingFileError.
 */
export class FolderRecordings {
  readonly #folder: string | undefined;
  readonly #maxIndexed: number | undefined;
  readonly #gate = new FolderGate();
  #index: RecordingIndex | undefined;
  #nextList: Promise<FolderList> | undefined;

  constructor(folder: string | undefined, maxIndexed?: number) {
    this.#folder = folder;
    this.#maxIndexed = maxIndexed;
  }

  /** Throws StatusError 400 for invalid selectors. */
  async page(query: RecordingsQuery): Promise<RecordingsPage> {
    const { recordings, isComplete } = await this.#listed();
    return { ...pageOf(recordings, query), ...(!isComplete && { isCut: true }) };
  }

  /** A hash that changes whenever a recording is added or deleted. */
  async state(): Promise<string> {
    const hash = createHash("sha256");
    for (const { facts, endedMs, bytes } of (await this.#listed()).recordings)
      hash.update(`${JSON.stringify([facts.namespace, facts.session, endedMs, bytes])}\n`);
    return hash.digest("base64url");
  }

  /** The recording, with its command line; undefined if this folder does not have it. */
  async find(key: ObjectKey): Promise<RecordingObject | undefined> {
    const stored = await this.#stored(key);
    return stored && recordingObjectOf(stored, true);
  }

  /**
   * Bytes `start` to `end`, inclusive; undefined if this folder does not have the recording. Opens
   * the file when it is first read.
   */
  async content(key: ObjectKey, start: number, end: number): Promise<AsyncGenerator<Uint8Array> | undefined> {
    const stored = await this.#stored(key);
    return stored && this.#contentOf(stored.file, start, end);
  }

  /**
   * At most `bytes` bytes from `start`, in one buffer; undefined if this folder does not have the
   * recording.
   */
  async part(key: ObjectKey, start: number, bytes: number): Promise<Buffer | undefined> {
    const stored = await this.#stored(key);
    if (stored === undefined) return undefined;
    return await this.#gate.run(() => partOf(stored.file, start, bytes));
  }

  /** Returns false if this folder does not have the recording. */
  async delete(key: ObjectKey, reason: string): Promise<boolean> {
    const stored = await this.#stored(key);
    if (stored === undefined) return false;
    const { deleteRecording } = await import("../recording/storage/delete-recording.ts");
    await this.#gate.run(() => deleteRecording(this.#folder ?? "", stored.file, reason));
    return true;
  }

  async #stored({ namespace, id }: ObjectKey): Promise<StoredRecording | undefined> {
    const index = await this.#opened();
    const named = index === undefined ? [] : await this.#gate.run(() => index.find(id));
    return named.find(({ facts }) => facts.namespace === namespace);
  }

  async #listed(): Promise<FolderList> {
    const index = await this.#opened();
    if (index === undefined) return { recordings: [], isComplete: true };
    const read = async (): Promise<FolderList> => {
      this.#nextList = undefined;
      return await index.list();
    };
    // A list that has not begun is shared: it contains what its callers know to have ended.
    this.#nextList ??= this.#gate
      .run(read, () => index.filesRead)
      .finally(() => {
        this.#nextList = undefined;
      });
    return await this.#nextList;
  }

  /** Opens the file only for a client that reads: one that has left would leave it open. */
  async *#contentOf(file: string, start: number, end: number): AsyncGenerator<Uint8Array, void> {
    for (let at = start; at <= end; at += RECORDING_PART_BYTES) {
      const bytes = Math.min(RECORDING_PART_BYTES, end + 1 - at);
      const part = await this.#gate.run(() => partOf(file, at, bytes));
      if (part.byteLength !== bytes) throw new Error("the recording became shorter");
      yield part;
    }
  }

  async #opened(): Promise<RecordingIndex | undefined> {
    if (this.#folder === undefined) return undefined;
    const { RecordingIndex } = await import("../recording/reading/recording-index.ts");
    this.#index ??= new RecordingIndex(this.#folder, this.#maxIndexed);
    return this.#index;
  }
}

/**
 * One page of a folder's or the store's recordings. Throws StatusError 400 for invalid selectors.
 */
export function pageOf(
  stored: readonly StoredRecording[],
  { namespace, labels, fields, after, limit }: RecordingsQuery,
): RecordingsPage {
  const selectors = new URLSearchParams({ labelSelector: labels, fieldSelector: fields });
  const matches = matcherOf({ resource: RECORDINGS, namespace, name: undefined }, selectors);
  const isSelected = labels !== "" || fields !== "";
  const rest = stored.filter((each) => {
    const { namespace: of, session: id } = each.facts;
    if (namespace !== undefined && of !== namespace) return false;
    if (after !== undefined && compareKeys({ namespace: of, id }, after) <= 0) return false;
    return !isSelected || matches(recordingObjectOf(each, false));
  });
  const page = limit === 0 ? rest : rest.slice(0, limit);
  const items = page.map((each) => recordingObjectOf(each, false));
  return { items, remaining: rest.length - items.length };
}

export function keyOf({ metadata: { namespace = "", name } }: RecordingObject): ObjectKey {
  return { namespace, id: name };
}

async function partOf(file: string, start: number, bytes: number): Promise<Buffer> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(bytes), 0, bytes, start);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/**
 * Lets requests to a folder through, a few at once, and gives up those that its disk does not answer.
 * Of lists one runs at a time: the first of a large folder may take longer than its request.
 */
export class FolderGate {
  #running = 0;
  #isListing = false;
  /** Given up, and still not answered. */
  #hanging = 0;
  #waiting: (() => void)[] = [];

  /**
   * `progress` of a list rises while it reads. Throws StatusError 503 for a disk that hangs, at once
   * while an earlier request does, and for a list that goes on behind its request.
   */
  async run<T>(work: () => Promise<T>, progress?: () => number): Promise<T> {
    if (this.#hanging > 0) throw WIRE_ERRORS["recording-folder-silent"].streaming();
    const isList = progress !== undefined;
    const before = progress?.();
    let timer: NodeJS.Timeout | undefined;
    let isLate = false;
    let isRunning = false;
    let isHanging = false;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isLate = true;
        const read = progress?.();
        isHanging = isRunning && read === before;
        if (isHanging) this.#hanging += 1;
        const error = read === before ? "recording-folder-silent" : "recording-folder-read";
        reject(WIRE_ERRORS[error].streaming());
      }, MAX_FOLDER_WAIT_MS);
    });
    const worked = this.#turn(isList).then(async () => {
      isRunning = !isLate;
      try {
        if (isLate) throw new Error("its request was given up");
        return await work();
      } finally {
        if (isHanging) this.#hanging -= 1;
        this.#running -= 1;
        if (isList) this.#isListing = false;
        for (const resolve of this.#waiting.splice(0)) resolve();
      }
    });
    worked.catch(() => {});
    return await Promise.race([worked, late]).finally(() => clearTimeout(timer));
  }

  async #turn(isList: boolean): Promise<void> {
    while (this.#running >= MAX_FOLDER_REQUESTS || (isList && this.#isListing))
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running += 1;
    if (isList) this.#isListing = true;
  }
}
