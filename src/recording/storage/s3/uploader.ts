import { lstat, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import type { RecordingStore } from "../../../config/sections/recording.ts";
import { filesBelow } from "../../reading/find-recordings.ts";
import { UPLOADED } from "../delete-recording.ts";
import { elementsOf, S3Error, textOf, uploadProblemOf } from "./s3-answer.ts";
import { S3Store } from "./s3-store.ts";
import { abortUpload, uploadFile } from "./upload-file.ts";

/** The pause after a failed round. It doubles with each further failure, up to LONGEST_PAUSE_MS. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/** The age up to which other gateways' uploads may still be running. Past it they are aborted. */
const MAX_UPLOAD_AGE_MS = 24 * 60 * 60_000;
/** Pages of a thousand uploads that one start reads. Past it the next start continues. */
const MAX_PAGES = 100;

/** The results of one round of uploads. */
export interface UploadRound {
  readonly uploaded: number;
  readonly failed: number;
  /** Recordings that still wait after the round. */
  readonly waiting: number;
  readonly waitingBytes: number;
  /** Milliseconds since the oldest waiting recording ended; 0 if none waits. */
  readonly oldestMs: number;
  readonly problem?: string | undefined;
}

interface Waiting {
  readonly file: string;
  readonly bytes: number;
  readonly endedMs: number;
}

/** Uploads a folder's finished recordings, oldest first. A failed upload does not stop the others. */
export class Uploader {
  readonly #folder: string;
  readonly #settings: RecordingStore;
  readonly #trust: { ca: string | undefined };
  readonly #nowMs: () => number;
  readonly #stopping = new AbortController();
  readonly #failures = new Map<string, number>();
  #store: S3Store | undefined;
  #isSwept = false;
  #failedRounds = 0;
  #notBeforeMs = 0;

  /** `ca`: the store's authorities, PEM. */
  constructor(folder: string, settings: RecordingStore, ca?: string, nowMs: () => number = Date.now) {
    this.#folder = folder;
    this.#settings = settings;
    this.#trust = { ca };
    this.#nowMs = nowMs;
  }

  /**
   * `isActive`: of the processes that share the folder, this one uploads. `onBegin` gets what waits
   * before an upload begins, which may take long. Rejects if the folder cannot be read.
   */
  async round(isActive: boolean, onBegin: (round: UploadRound) => void = () => {}): Promise<UploadRound> {
    const waiting = await this.#waiting();
    const before = summaryOf(waiting, this.#nowMs());
    if (!isActive || this.#nowMs() < this.#notBeforeMs) return before;
    onBegin(before);
    const left: Waiting[] = [];
    let problem: string | undefined;
    let uploaded = 0;
    let failed = 0;
    for (const [index, recording] of waiting.entries()) {
      try {
        const store = await this.#open(waiting);
        const key = this.#keyOf(recording.file);
        const { bucket, endpoint } = this.#settings;
        const object = { endpoint, bucket, ...(await uploadFile(store, recording.file, key)) };
        const mark = JSON.stringify({ ...object, uploadedAt: new Date().toISOString() });
        // A link there is removed, not followed.
        await rm(`${recording.file}${UPLOADED}`, { force: true });
        await writeFile(`${recording.file}${UPLOADED}`, `${mark}\n`, { mode: 0o600, flag: "wx" });
        this.#failures.delete(recording.file);
        uploaded += 1;
      } catch (error) {
        if (this.#stopping.signal.aborted) break;
        failed += 1;
        problem = uploadProblemOf(error);
        this.#failures.set(recording.file, (this.#failures.get(recording.file) ?? 0) + 1);
        left.push(recording);
        if (error instanceof S3Error && !error.isOfStore) continue;
        left.push(...waiting.slice(index + 1));
        break;
      }
    }
    this.#pause(failed > 0);
    return { ...summaryOf(left, this.#nowMs()), uploaded, failed, ...(problem !== undefined && { problem }) };
  }

  /** What waits now, also while a round runs. Rejects if the folder cannot be read. */
  async waiting(): Promise<UploadRound> {
    return summaryOf(await this.#waiting(), this.#nowMs());
  }

  /** Trusts these authorities from now on, and tries again at once what failed. */
  trust(ca: string | undefined): void {
    this.#trust.ca = ca;
    this.#notBeforeMs = 0;
  }

  /** Aborts the upload in progress. */
  stop(): void {
    this.#stopping.abort();
    this.#store?.close();
  }

  async #open(waiting: readonly Waiting[]): Promise<S3Store> {
    this.#store ??= await S3Store.open({
      settings: this.#settings,
      signal: this.#stopping.signal,
      trust: this.#trust,
    });
    if (!this.#isSwept) {
      const own = new Set(waiting.map(({ file }) => this.#keyOf(file)));
      // Credentials may permit only uploads; then the sweep counts as done.
      this.#isSwept = await sweepUploads(this.#store, (key) => own.has(key)).then(
        () => true,
        (error: unknown) => error instanceof S3Error && !error.isTransient,
      );
    }
    return this.#store;
  }

  #pause(hasFailed: boolean): void {
    this.#failedRounds = hasFailed ? this.#failedRounds + 1 : 0;
    const ms = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.#failedRounds - 1));
    this.#notBeforeMs = hasFailed ? this.#nowMs() + ms : 0;
  }

  #keyOf(file: string): string {
    return this.#settings.prefix + path.relative(this.#folder, file).split(path.sep).join("/");
  }

  /** Recordings that failed come last, so that they do not hold up the others. */
  async #waiting(): Promise<Waiting[]> {
    const names = new Set(await filesBelow(this.#folder));
    const found: Waiting[] = [];
    for (const file of names) {
      if (!file.endsWith(".cast") || names.has(`${file}${UPLOADED}`)) continue;
      const { size, mtimeMs } = (await lstat(file).catch(() => undefined)) ?? {};
      if (size !== undefined && mtimeMs !== undefined) found.push({ file, bytes: size, endedMs: mtimeMs });
    }
    const failuresOf = ({ file }: Waiting): number => this.#failures.get(file) ?? 0;
    return found.sort((one, other) => failuresOf(one) - failuresOf(other) || one.endedMs - other.endedMs);
  }
}

function summaryOf(waiting: readonly Waiting[], nowMs: number): UploadRound {
  const oldestMs = waiting.length === 0 ? 0 : nowMs - Math.min(...waiting.map(({ endedMs }) => endedMs));
  return {
    uploaded: 0,
    failed: 0,
    waiting: waiting.length,
    waitingBytes: waiting.reduce((sum, { bytes }) => sum + bytes, 0),
    oldestMs: Math.max(0, oldestMs),
  };
}

/**
 * Aborts unfinished uploads of dead processes: those of keys for which `isOwn` is true, and old ones.
 * One that the store does not abort does not keep the others. Returns how many. Rejects with S3Error.
 */
export async function sweepUploads(store: S3Store, isOwn: (key: string) => boolean): Promise<number> {
  const { prefix } = store.settings;
  let aborted = 0;
  let marker = { "key-marker": "", "upload-id-marker": "" };
  for (let page = 0; page < MAX_PAGES; page++) {
    const { body } = await store.call({
      method: "GET",
      key: "",
      query: { uploads: "", prefix, ...(page > 0 && marker) },
      doing: "the list of uploads",
    });
    const text = body.toString("utf8");
    for (const upload of elementsOf(text, "Upload")) {
      const [key, uploadId] = [firstOf(upload, "Key"), firstOf(upload, "UploadId")];
      const ageMs = Date.now() - Date.parse(firstOf(upload, "Initiated"));
      const isLeft = key.startsWith(prefix) && (isOwn(key) || ageMs > MAX_UPLOAD_AGE_MS);
      // Without an id, some stores would delete the object instead.
      if (!isLeft || uploadId === "" || !isPlain(key)) continue;
      try {
        await abortUpload(store, key, uploadId);
        aborted += 1;
      } catch (error) {
        // Another gateway, or the bucket's own rules, may have aborted it.
        if (!(error instanceof S3Error) || error.isOfStore) throw error;
      }
    }
    const next = {
      "key-marker": firstOf(text, "NextKeyMarker"),
      "upload-id-marker": firstOf(text, "NextUploadIdMarker"),
    };
    // A store may repeat the same page; without this check it would be asked for a hundred.
    const isSame = JSON.stringify(next) === JSON.stringify(marker);
    if (firstOf(text, "IsTruncated") !== "true" || isSame) break;
    marker = next;
  }
  return aborted;
}

/** False for a key with `.` or `..` segments, which URLs resolve to another key. */
function isPlain(key: string): boolean {
  return !key.split("/").some((part) => part === "." || part === "..");
}

function firstOf(xml: string, name: string): string {
  return textOf(elementsOf(xml, name)[0] ?? "");
}
