import type { EventCode, TerminalSize } from "../format/asciicast.ts";
import type { PartKind } from "./slab.ts";
import type {
  BegunRecording,
  FinishedRecording,
  FromThread,
  LostOutput,
  RecordedEnd,
  ToThread,
} from "./thread-messages.ts";

/** A session waits when its queue has less room than this, so that data already read still fits. */
const ROOM_AHEAD_BYTES = 128 * 1024;
/**
 * A waiting session continues once its queue has drained to this part of its bound. A larger part
 * would make it wait more often.
 */
const LOW_PART = 1 / 4;

/** A recording cannot be written. The message is the system's error code or a sentence. */
export class RecordingError extends Error {}

/** What the queues of a process share: see Recorder. */
interface SharedQueue {
  readonly maxQueuedBytesPerSession: number;
  readonly isFilling: boolean;
  add(handle: number, kind: PartKind, timeMs: number, part: Uint8Array): boolean;
  post(message: ToThread): void;
  wait(queue: RecordingQueue): void;
  forget(handle: number): void;
}

/** Events for the queue's session. */
interface QueueEvents {
  /** The queue has room again after `isFilling`, or after it did not take a part. */
  onRoom(): void;
  /** A gap began, because the file cannot be written or the thread ended. */
  onFailed(problem: string): void;
  /** A gap that the thread had begun is over; `bytes` are missing. */
  onGap(bytes: number): void;
  /** Called each minute, with the chain's state. */
  onChunk(chunk: number, hash: string): void;
}

interface Settle<T> {
  resolve(value: T): void;
  reject(error: RecordingError): void;
}

/** Queues one session's data for its recording. Times are milliseconds since the session's start. */
export class RecordingQueue {
  readonly file: string;
  readonly #handle: number;
  readonly #shared: SharedQueue;
  readonly #opened: Settle<RecordingQueue>;
  #ended: Settle<FinishedRecording> | undefined;
  #events: QueueEvents | undefined;
  #written: (() => void)[] = [];
  #queuedBytes = 0;
  #isGone = false;
  /** Nothing was added since the last `write`. */
  #isAsked = false;
  /** All added data is in the file, or `onFailed` was called. */
  isWritten = false;

  constructor(handle: number, file: string, shared: SharedQueue, opened: Settle<RecordingQueue>) {
    this.#handle = handle;
    this.file = file;
    this.#shared = shared;
    this.#opened = opened;
  }

  begin(begun: BegunRecording, events: QueueEvents): void {
    this.#events = events;
    if (this.#isGone) events.onFailed(THREAD_ENDED);
    else this.#post({ kind: "begin", handle: this.#handle, ...begun });
  }

  /** Copies a part into the queue. Returns false without copying if the queue is full. */
  add(kind: PartKind, timeMs: number, part: Uint8Array): boolean {
    const { maxQueuedBytesPerSession } = this.#shared;
    const isWithin = !this.#isGone && this.#queuedBytes + part.byteLength <= maxQueuedBytesPerSession;
    if (!isWithin || !this.#shared.add(this.#handle, kind, timeMs, part)) {
      this.#wait();
      return false;
    }
    this.#queuedBytes += part.byteLength;
    this.#isAsked = this.isWritten = false;
    return true;
  }

  /** True if the session must wait; `onRoom` follows. */
  get isFilling(): boolean {
    const most = this.#shared.maxQueuedBytesPerSession - ROOM_AHEAD_BYTES;
    if (!this.#isGone && this.#queuedBytes <= most && !this.#shared.isFilling) return false;
    this.#wait();
    return true;
  }

  resize(timeMs: number, { columns, rows }: TerminalSize): boolean {
    const part = Buffer.alloc(4);
    part.writeUInt16BE(columns, 0);
    part.writeUInt16BE(rows, 2);
    return this.add("resize", timeMs, part);
  }

  event(timeMs: number, code: EventCode, data: string): boolean {
    return this.add("event", timeMs, Buffer.from(code + data, "utf8"));
  }

  lost(timeMs: number, lost: LostOutput): void {
    this.#post({ kind: "lost", handle: this.#handle, timeMs, ...lost });
  }

  /** Resolves when all added data is in the file. After `onFailed` it may resolve at any time. */
  async write(): Promise<void> {
    while (!this.#isAsked && !this.#isGone) {
      this.#isAsked = true;
      const written = new Promise<void>((resolve) => this.#written.push(resolve));
      this.#post({ kind: "write", handle: this.#handle });
      await written;
    }
    this.isWritten = !this.#isGone;
  }

  /** Resolves when the recording is on the disk. Rejects with RecordingError. */
  end(timeMs: number, end: RecordedEnd): Promise<FinishedRecording> {
    if (this.#isGone) return Promise.reject(new RecordingError(THREAD_ENDED));
    return new Promise((resolve, reject) => {
      this.#ended = { resolve, reject };
      this.#post({ kind: "end", handle: this.#handle, timeMs, ...end });
    });
  }

  /** Removes the recording, because the session did not start. */
  discard(): void {
    this.#post({ kind: "discard", handle: this.#handle });
    this.#shared.forget(this.#handle);
  }

  /** The recorder calls this when the thread has handled this many bytes of the session. */
  taken(bytes: number): void {
    this.#queuedBytes -= bytes;
  }

  /** The recorder calls this while the session waits. Returns false if the queue has too little room. */
  notify(): boolean {
    if (this.#queuedBytes > this.#shared.maxQueuedBytesPerSession * LOW_PART) return false;
    this.#events?.onRoom();
    return true;
  }

  receive(message: Extract<FromThread, { handle: number }>): void {
    switch (message.kind) {
      case "opened":
        if (message.problem === undefined) {
          this.#opened.resolve(this);
          return;
        }
        this.#shared.forget(this.#handle);
        this.#opened.reject(new RecordingError(message.problem));
        return;
      case "failed":
        this.#events?.onFailed(message.problem);
        return;
      case "written":
        this.#written.shift()?.();
        return;
      case "chunk":
        this.#events?.onChunk(message.chunk, message.hash);
        return;
      case "gap":
        this.#events?.onGap(message.bytes);
        return;
      case "ended":
        this.#shared.forget(this.#handle);
        if (message.finished !== undefined) this.#ended?.resolve(message.finished);
        else this.#ended?.reject(new RecordingError(message.problem ?? "unknown"));
    }
  }

  threadEnded(): void {
    this.#isGone = true;
    this.#shared.forget(this.#handle);
    const error = new RecordingError(THREAD_ENDED);
    this.#opened.reject(error);
    this.#ended?.reject(error);
    this.#events?.onFailed(THREAD_ENDED);
    for (const resolve of this.#written.splice(0)) resolve();
  }

  #wait(): void {
    if (!this.#isGone) this.#shared.wait(this);
  }

  #post(message: ToThread): void {
    if (!this.#isGone) this.#shared.post(message);
  }
}

const THREAD_ENDED = "the thread that writes recordings has ended";
