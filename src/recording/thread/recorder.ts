import { randomUUID } from "node:crypto";
import { Worker } from "node:worker_threads";
import { ownProgram } from "@sluice/client/internal/config/version";
import type { Deleted, Retention } from "../storage/apply-retention.ts";
import type { UploadRound } from "../storage/s3/uploader.ts";
import { codeOf } from "./disk.ts";
import type { PartOutcome } from "./finish-left-parts.ts";
import { type RecordingError, RecordingQueue } from "./recording-queue.ts";
import { type PartKind, Slab } from "./slab.ts";
import type { FromThread, ThreadInput, ToThread } from "./thread-messages.ts";
import { removeLease } from "./writer-lease.ts";

const PROGRAM = ownProgram("recorder-thread", import.meta.url);

/** How long collected data waits before the thread gets it, in milliseconds. */
const HAND_OVER_MS = 10;
/** While the thread has this many slabs, it gets only full ones. */
const SLABS_AHEAD = 2;
/** Smaller slabs are copied, so that a few bytes do not occupy the memory of a whole slab. */
const SMALL_BYTES = 8 * 1024;
const KEPT_SLABS = 8;

interface RecorderOptions extends ThreadInput, RecorderEvents {
  readonly maxQueuedBytesPerSession: number;
  /** Limit for all sessions together. */
  readonly maxQueuedBytes: number;
  /** The compiled `recorder-thread.ts`. */
  readonly program?: URL | undefined;
}

export interface RecorderEvents {
  /** The thread ended by itself or could not start. The next recording starts another. */
  readonly onProblem: (error: unknown) => void;
  /** An unfinished recording of a dead writer was handled. */
  readonly onLeft: (outcome: PartOutcome, file: string) => void;
  /** Some files of dead writers could not be finished or removed. */
  readonly onLeftProblem: (problem: string) => void;
  /** Old recordings were deleted; `problem` is set if some could not be. */
  readonly onDeleted: (deleted: Deleted, problem: string | undefined) => void;
  /** `isActive`: this process uploads for all that share the folder. */
  readonly onUploads?: (round: UploadRound, isActive: boolean) => void;
}

/**
 * Records this process's sessions: copies their data into slabs, which one thread encodes, chains and
 * writes. If the thread ends, another replaces it.
 */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #queues = new Map<number, RecordingQueue>();
  readonly #waiting = new Set<RecordingQueue>();
  readonly #slabs: ArrayBuffer[] = [];
  #writer: string;
  #signingKey: string;
  #retention: Retention;
  #storeCa: string | undefined;
  #worker: Worker | undefined;
  #slab = new Slab();
  #slabsAway = 0;
  #timer: NodeJS.Timeout | undefined;
  #lastHandle = 0;
  #queuedBytes = 0;

  constructor(options: RecorderOptions) {
    this.#options = options;
    this.#writer = options.writer;
    this.#signingKey = options.signingKey;
    this.#retention = options.retention;
    this.#storeCa = options.storeCa;
  }

  /** Number of open recordings. */
  get size(): number {
    return this.#queues.size;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  get maxQueuedBytesPerSession(): number {
    return this.#options.maxQueuedBytesPerSession;
  }

  /** Starts the thread, which also finishes recordings of dead writers. */
  start(): void {
    this.#thread();
  }

  /** Creates a recording's file; `file` is relative to the folder. Rejects with RecordingError. */
  open(file: string): Promise<RecordingQueue> {
    const handle = ++this.#lastHandle;
    return new Promise((resolve, reject: (error: RecordingError) => void) => {
      const queue = new RecordingQueue(handle, file, this, { resolve, reject });
      this.#queues.set(handle, queue);
      this.post({ kind: "open", handle, file });
    });
  }

  /** Signs later recordings with this key. */
  useKey(signingKey: string): void {
    this.#signingKey = signingKey;
    this.#worker?.postMessage({ kind: "signing-key", signingKey } satisfies ToThread);
  }

  /** From now on deletes finished recordings by these limits. */
  keep(retention: Retention): void {
    this.#retention = retention;
    this.#worker?.postMessage({ kind: "retention", retention } satisfies ToThread);
  }

  /** From now on verifies the store's certificate with these authorities. */
  trustStore(ca: string | undefined): void {
    this.#storeCa = ca;
    this.#worker?.postMessage({ kind: "store-ca", ca } satisfies ToThread);
  }

  /** Resolves when every ended recording is on the disk, or when the thread has ended. */
  async stop(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    const ended = new Promise((resolve) => worker.once("exit", resolve));
    worker.ref();
    this.post({ kind: "stop" });
    await ended;
  }

  /** Sends the message to the thread, after all data that was added before. */
  post(message: ToThread): void {
    const worker = this.#thread();
    this.#handOver(worker);
    worker.postMessage(message);
  }

  /** Copies a part into the queue. Returns false without copying if the queue is full. */
  add(handle: number, kind: PartKind, timeMs: number, part: Uint8Array): boolean {
    if (this.#queuedBytes + part.byteLength > this.#options.maxQueuedBytes) return false;
    const isWhole = kind === "event" || kind === "resize";
    if (isWhole && !this.#slab.fits(part.byteLength)) this.#handOver(this.#thread());
    for (let done = 0; done < part.byteLength; ) {
      const rest = done === 0 ? part : part.subarray(done);
      const copied = this.#slab.add(handle, kind, timeMs, rest);
      done += copied;
      if (copied === 0) this.#handOver(this.#thread());
    }
    this.#queuedBytes += part.byteLength;
    this.#timer ??= setTimeout(this.#due, HAND_OVER_MS);
    return true;
  }

  /** True while the data of all sessions together is so much that sessions must wait. */
  get isFilling(): boolean {
    return this.#queuedBytes > this.#options.maxQueuedBytes * (7 / 8);
  }

  /** Notifies this queue once it and all sessions together have room again. */
  wait(queue: RecordingQueue): void {
    this.#waiting.add(queue);
  }

  forget(handle: number): void {
    const queue = this.#queues.get(handle);
    this.#queues.delete(handle);
    if (queue !== undefined) this.#waiting.delete(queue);
  }

  readonly #due = (): void => {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#slab.used > 0 && this.#slabsAway < SLABS_AHEAD) this.#handOver(this.#thread());
  };

  #handOver(worker: Worker): void {
    const { buffer, used } = this.#slab;
    if (used === 0) return;
    this.#slabsAway += 1;
    if (used < SMALL_BYTES) {
      const copy = buffer.slice(0, used);
      worker.postMessage({ kind: "slab", buffer: copy, used } satisfies ToThread, [copy]);
      this.#slab.used = 0;
      return;
    }
    worker.postMessage({ kind: "slab", buffer, used } satisfies ToThread, [buffer]);
    this.#slab = new Slab(this.#slabs.pop());
  }

  #taken({ slabs, buffers, bytes }: Extract<FromThread, { kind: "taken" }>): void {
    this.#slabsAway -= slabs;
    this.#slabs.push(...buffers.slice(0, KEPT_SLABS - this.#slabs.length));
    for (const [handle, count] of bytes) {
      this.#queuedBytes -= count;
      this.#queues.get(handle)?.taken(count);
    }
    if (!this.isFilling)
      for (const queue of [...this.#waiting]) if (queue.notify()) this.#waiting.delete(queue);
    // Other data waits for the timer, so that the thread gets larger slabs.
    if (this.#timer === undefined || this.#waiting.size > 0) this.#due();
  }

  #thread(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    const { program = PROGRAM, folder, store } = this.#options;
    const [writer, signingKey, retention] = [this.#writer, this.#signingKey, this.#retention];
    const workerData: ThreadInput = { folder, writer, signingKey, retention, store, storeCa: this.#storeCa };
    const worker = new Worker(program, { workerData });
    this.#worker = worker;
    // A running session keeps the process alive, but its recorder's thread does not.
    worker.unref();
    worker.on("message", (message: FromThread) => {
      if (message.kind === "taken") this.#taken(message);
      else if (message.kind === "deleted") this.#options.onDeleted(message.deleted, message.problem);
      else if (message.kind === "uploads") this.#options.onUploads?.(message.round, message.isActive);
      else if (message.kind === "left-problem") this.#options.onLeftProblem(message.problem);
      else if (message.kind === "left") this.#options.onLeft(message.outcome, message.file);
      else this.#queues.get(message.handle)?.receive(message);
    });
    worker.on("error", (error) => this.#options.onProblem(error));
    worker.on("exit", () => this.#ended());
    return worker;
  }

  #ended(): void {
    this.#worker = undefined;
    // The next thread finishes this one's recordings, so it needs another name.
    const left = this.#writer;
    this.#writer = randomUUID();
    this.#slab = new Slab();
    this.#slabsAway = 0;
    this.#queuedBytes = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const queue of [...this.#queues.values()]) queue.threadEnded();
    try {
      removeLease(this.#options.folder, left);
    } catch (error) {
      this.#options.onLeftProblem(codeOf(error));
    }
  }
}
