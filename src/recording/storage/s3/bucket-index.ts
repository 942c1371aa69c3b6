import type { RecordingStore } from "../../../config/sections/recording.ts";
import { dayOfSession } from "../../../sessions/session-id.ts";
import { parseHeader } from "../../format/asciicast.ts";
import { parseHeadLine } from "../../format/signed-head.ts";
import { RecordingFileError } from "../../reading/recording-file-error.ts";
import { type StoredRecording, withoutCommand } from "../../reading/recording-index.ts";
import { recordingFileOf } from "../../recorded-facts.ts";
import { listObjects, type StoredObject } from "./list-objects.ts";
import { S3Error, uploadProblemOf } from "./s3-answer.ts";
import { S3Store } from "./s3-store.ts";

/** How long a list of the bucket is reused. Past it the next request lists it again. */
const BUCKET_LIST_MS = 30_000;
/** How long a request waits for the bucket. Past it the answer says that the bucket is still being read. */
const MAX_BUCKET_WAIT_MS = 5_000;
/** Objects whose first and last lines are remembered. Past it the oldest are not listed. */
const MAX_BUCKET_RECORDINGS = 50_000;
const READ_AT_ONCE = 8;
/** Bytes of the first read, which covers a short recording completely. */
const FIRST_BYTES = 64 * 1024;
/** A recording's first line, which has a command of up to 1 MiB twice, escaped. Past it an object is not listed. */
const MAX_BUCKET_HEADER_BYTES = 8 * 1024 * 1024;
/** Bytes of each further read of a longer header. */
const NEXT_BYTES = 1024 * 1024;
const HEAD_BYTES = 8 * 1024;

/** The recordings that were found in a bucket. `problem`: why some may be missing. */
interface BucketList {
  /** Sorted by namespace and id. */
  readonly recordings: readonly StoredRecording[];
  readonly problem?: string | undefined;
}

/** The store answers so for an object that does not exist, or is empty. */
const MISSING = new Set(["404 NoSuchKey", "404 NotFound", "416 InvalidRange"]);

type Known = StoredRecording | "other";

/**
 * Lists the recordings in a bucket. Objects do not change, so each is read once, newest first; until
 * all are read, requests get those that are.
 */
export class BucketIndex {
  readonly #settings: RecordingStore;
  readonly #trust: { readonly ca: string | undefined };
  readonly #nowMs: () => number;
  readonly #maxRecordings: number;
  readonly #stopping = new AbortController();
  #store: Promise<S3Store> | undefined;
  #objects: readonly StoredObject[] = [];
  #known = new Map<string, Known>();
  #sorted: readonly StoredRecording[] | undefined;
  #problem: string | undefined;
  #listedMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;

  constructor(
    settings: RecordingStore,
    trust: { readonly ca: string | undefined } = { ca: undefined },
    nowMs: () => number = () => performance.now(),
    maxRecordings: number = MAX_BUCKET_RECORDINGS,
  ) {
    this.#settings = settings;
    this.#trust = trust;
    this.#nowMs = nowMs;
    this.#maxRecordings = maxRecordings;
  }

  /** Waits for at most MAX_BUCKET_WAIT_MS. Never rejects. */
  async list(): Promise<BucketList> {
    const isKnown = await this.#refreshed(BUCKET_LIST_MS);
    const problem = isKnown ? this.#problem : (this.#problem ?? "it is still being read");
    this.#sorted ??= sortedOf(this.#known.values());
    return { recordings: this.#sorted, problem };
  }

  /**
   * The recordings with this session id: several if folders hold copies. An id with a day leads to
   * its object, whether or not that is listed. Rejects with an Error for users.
   */
  async find(session: string): Promise<readonly StoredRecording[]> {
    const own = () => this.#objects.filter((object) => object.session === session);
    let objects = own();
    const day = dayOfSession(session);
    if (objects.length === 0 && day !== undefined) return await this.#answered(this.#named(session, day));
    if (objects.length === 0) {
      const isListed = await this.#refreshed(0);
      objects = own();
      const problem = isListed ? this.#problem : "it does not answer";
      if (objects.length === 0 && problem !== undefined) throw new Error(problem);
    }
    // Lists remember no commands, so the objects are read again.
    const found = await this.#answered(Promise.all(objects.map((object) => this.#present(object))));
    return found.filter((each) => each !== undefined);
  }

  /** Reads this many bytes from `start` on. Rejects with S3Error or RecordingFileError. */
  async part({ file: key }: StoredRecording, start: number, bytes: number): Promise<Buffer> {
    return await this.#part(key, start, bytes);
  }

  /** Aborts running requests. */
  stop(): void {
    this.#stopping.abort();
    void this.#store?.then((store) => store.close()).catch(() => {});
  }

  /** Refreshes a list that is older than `maxAgeMs`. Returns false if the bucket did not answer in time. */
  async #refreshed(maxAgeMs: number): Promise<boolean> {
    if (this.#running === undefined && this.#nowMs() - this.#listedMs >= maxAgeMs)
      this.#running = this.#refresh().finally(() => {
        this.#running = undefined;
        this.#listedMs = this.#nowMs();
      });
    if (this.#running === undefined) return true;
    return (await this.#within(this.#running.then(() => true))) ?? false;
  }

  /** Rejects with an Error for users, also if the bucket does not answer in time. */
  async #answered<T>(waiting: Promise<T>): Promise<T> {
    const answer = await this.#within(waiting).catch((error: unknown) => {
      throw new Error(problemOf(error));
    });
    if (answer === undefined) throw new Error("it does not answer");
    return answer;
  }

  async #within<T>(waiting: Promise<T>): Promise<T | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), MAX_BUCKET_WAIT_MS);
    });
    return await Promise.race([waiting, late]).finally(() => clearTimeout(timer));
  }

  /** Never rejects. */
  async #refresh(): Promise<void> {
    try {
      const { objects, isComplete } = await listObjects(await this.#opened());
      this.#objects = objects;
      const newest = objects.slice(-this.#maxRecordings);
      this.#keep(newest);
      const problem = await this.#readAll(newest.filter(({ key }) => !this.#known.has(key)).reverse());
      const isAll = isComplete && newest.length === objects.length;
      this.#problem = problem ?? (isAll ? undefined : "it has too many objects");
    } catch (error) {
      this.#problem = problemOf(error);
    }
  }

  /** Returns the first problem. The next list tries unreadable objects again. */
  async #readAll(unread: readonly StoredObject[]): Promise<string | undefined> {
    let problem: string | undefined;
    for (let at = 0; at < unread.length; at += READ_AT_ONCE) {
      const batch = unread.slice(at, at + READ_AT_ONCE);
      const problems = await Promise.all(
        batch.map((object) =>
          this.#read(object).then(
            () => undefined,
            (error: unknown) => error,
          ),
        ),
      );
      const failed = problems.filter((each) => each !== undefined);
      if (failed.length > 0) problem ??= problemOf(failed[0]);
      if (failed.some((each) => !(each instanceof S3Error) || each.isOfStore)) break;
    }
    return problem;
  }

  #keep(objects: readonly StoredObject[]): void {
    const known = new Map<string, Known>();
    for (const { key } of objects) {
      const each = this.#known.get(key);
      if (each !== undefined) known.set(key, each);
    }
    this.#known = known;
    this.#sorted = undefined;
  }

  /** Remembers the object, unless it was deleted. Rejects with S3Error or RecordingFileError. */
  async #read(object: StoredObject): Promise<void> {
    try {
      const read = await this.#stored(object);
      this.#known.set(object.key, read === undefined ? "other" : withoutCommand(read));
      if (read !== undefined) this.#sorted = undefined;
    } catch (error) {
      if (!isDeleted(error)) throw error;
    }
  }

  /** Undefined also if the object was deleted. Rejects with S3Error or RecordingFileError. */
  async #present(object: StoredObject): Promise<StoredRecording | undefined> {
    return await this.#stored(object).catch((error: unknown) => {
      if (isDeleted(error)) return undefined;
      throw error;
    });
  }

  /** Does not remember what it reads: a list forgets only what it does not list. */
  async #named(session: string, day: Date): Promise<StoredRecording[]> {
    const key = this.#settings.prefix + recordingFileOf(session, day);
    try {
      const stored = await this.#stored({ key, session, bytes: await this.#sizeOf(key) });
      return stored === undefined ? [] : [stored];
    } catch (error) {
      const isMissing = error instanceof S3Error && MISSING.has(`${error.status} ${error.code}`);
      if (isMissing) return [];
      throw error;
    }
  }

  /** From the answer to a part, whose errors have a code, unlike those of HEAD. */
  async #sizeOf(key: string): Promise<number> {
    const doing = "the read of a recording";
    const headers = { range: "bytes=0-0" };
    const store = await this.#opened();
    const { status, headers: answer } = await store.call({ method: "GET", key, headers, doing });
    const [, bytes] = /^bytes 0-0\/(\d{1,15})$/.exec(answer["content-range"] ?? "") ?? [];
    if (status !== 206 || bytes === undefined) throw new S3Error("another part", status, doing);
    return Number(bytes);
  }

  async #stored({ key, session, bytes }: StoredObject): Promise<StoredRecording | undefined> {
    if (bytes === 0) return undefined;
    const first = await this.#start(key, bytes);
    const last =
      bytes <= first.byteLength ? first : await this.#part(key, Math.max(0, bytes - HEAD_BYTES), HEAD_BYTES);
    const facts = parseHeader(first.toString("utf8", 0, Math.max(0, first.indexOf("\n"))))?.sluice;
    const head = parseHeadLine(last.toString("utf8").trimEnd().split("\n").at(-1) ?? "");
    if (facts?.session !== session || head === undefined) return undefined;
    const endedMs = Date.parse(head.endedAt);
    return Number.isNaN(endedMs) ? undefined : { file: key, facts, head, bytes, endedMs };
  }

  /** Bytes from the object's start, which include its first line unless that is longer than the bound. */
  async #start(key: string, bytes: number): Promise<Buffer> {
    const parts = [await this.#part(key, 0, Math.min(bytes, FIRST_BYTES))];
    const end = Math.min(bytes, MAX_BUCKET_HEADER_BYTES);
    for (let at = FIRST_BYTES; at < end && parts.at(-1)?.includes("\n") === false; at += NEXT_BYTES)
      parts.push(await this.#part(key, at, Math.min(NEXT_BYTES, end - at)));
    return Buffer.concat(parts);
  }

  async #part(key: string, start: number, bytes: number): Promise<Buffer> {
    const store = await this.#opened();
    const headers = { range: `bytes=${start}-${start + bytes - 1}` };
    const doing = "the read of a recording";
    const { status, body } = await store.call({ method: "GET", key, headers, doing });
    if (status !== 206 || body.byteLength !== bytes) throw new S3Error("another part", status, doing);
    return body;
  }

  #opened(): Promise<S3Store> {
    this.#store ??= S3Store.open({
      settings: this.#settings,
      signal: this.#stopping.signal,
      trust: this.#trust,
      maxSockets: READ_AT_ONCE,
    });
    return this.#store;
  }
}

function isDeleted(error: unknown): boolean {
  return error instanceof S3Error && error.status === 404;
}

/** The problem as users may see it, without names of the gateway's files. */
function problemOf(error: unknown): string {
  return error instanceof RecordingFileError ? "its credentials cannot be read" : uploadProblemOf(error);
}

function sortedOf(known: Iterable<Known>): readonly StoredRecording[] {
  const recordings = [...known].filter((each) => each !== "other");
  return recordings.sort(({ facts: one }, { facts: other }) =>
    one.namespace === other.namespace
      ? compare(one.session, other.session)
      : compare(one.namespace, other.namespace),
  );
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
