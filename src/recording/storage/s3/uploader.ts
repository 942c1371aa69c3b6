import { stat } from "node:fs/promises";
import path from "node:path";
import type { RecordingStore } from "../../../config/sections/recording.ts";
import { filesBelow } from "../../reading/find-recordings.ts";
import { markUploaded, UPLOADED } from "../uploaded-mark.ts";
import { S3Error, uploadProblemOf } from "./s3-answer.ts";
import { S3Store } from "./s3-store.ts";
import { sweepUploads } from "./sweep-uploads.ts";
import { uploadFile } from "./upload-file.ts";

/** The next round is so late after one that failed, and later after each further one, up to the other. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 5 * 60_000;

/** What a round of uploads found and did. */
export interface UploadRound {
  readonly uploaded: number;
  readonly failed: number;
  /** Recordings that wait after the round. */
  readonly waiting: number;
  readonly waitingBytes: number;
  /** Since the oldest of them ended; 0 without any. */
  readonly oldestMs: number;
  readonly problem?: string | undefined;
}

interface Waiting {
  readonly file: string;
  readonly bytes: number;
  readonly endedMs: number;
}

/** Uploads a folder's finished recordings, the oldest first; one that fails does not stop the others. */
export class Uploader {
  readonly #folder: string;
  readonly #settings: RecordingStore;
  readonly #nowMs: () => number;
  readonly #stopping = new AbortController();
  readonly #failures = new Map<string, number>();
  #store: S3Store | undefined;
  #isSwept = false;
  #failedRounds = 0;
  #notBeforeMs = 0;

  constructor(folder: string, settings: RecordingStore, nowMs: () => number = Date.now) {
    this.#folder = folder;
    this.#settings = settings;
    this.#nowMs = nowMs;
  }

  /** `isActive`: this process uploads; of several with one folder one does. Rejects for a folder that fails. */
  async round(isActive: boolean): Promise<UploadRound> {
    const waiting = await this.#waiting();
    if (!isActive || this.#nowMs() < this.#notBeforeMs) return summaryOf(waiting, this.#nowMs());
    const left: Waiting[] = [];
    let problem: string | undefined;
    let uploaded = 0;
    let failed = 0;
    for (const [index, recording] of waiting.entries()) {
      try {
        const store = await this.#open(waiting);
        const key = this.#keyOf(recording.file);
        const { bucket, endpoint } = this.#settings;
        await markUploaded(recording.file, {
          endpoint,
          bucket,
          ...(await uploadFile(store, recording.file, key)),
        });
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

  /** Aborts what is being sent. */
  stop(): void {
    this.#stopping.abort();
    this.#store?.close();
  }

  async #open(waiting: readonly Waiting[]): Promise<S3Store> {
    this.#store ??= await S3Store.open(this.#settings, this.#stopping.signal);
    if (!this.#isSwept) {
      const own = new Set(waiting.map(({ file }) => this.#keyOf(file)));
      // Credentials may allow uploads alone.
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

  /** Those that failed come last, so that others are not held up. */
  async #waiting(): Promise<Waiting[]> {
    const names = new Set(await filesBelow(this.#folder));
    const found: Waiting[] = [];
    for (const file of names) {
      if (!file.endsWith(".cast") || names.has(`${file}${UPLOADED}`)) continue;
      const { size, mtimeMs } = (await stat(file).catch(() => undefined)) ?? {};
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
