import { Readable } from "node:stream";

export interface MessageSourceOptions {
  readonly messageBytes: number;
  /** How many; Infinity until `finish`. */
  readonly messages: number;
  /** 0: as fast as they are read. */
  readonly perSecond: number;
  /** True while no message more may be under way: the next one waits for `roomAgain`. */
  readonly isFull?: () => boolean;
  /** The bytes of the stream from an offset on. */
  readonly bytes: (offset: number, byteLength: number) => Uint8Array;
  /** A message is handed on; `dueMs` (performance.now) is when it should have been. */
  readonly onSent: (dueMs: number) => void;
}

/**
 * A session's input. Each message of a rate is due at its own time, so late ones count as late from
 * then (no coordinated omission). Timers have a resolution of a millisecond.
 */
export class MessageSource extends Readable {
  readonly #options: MessageSourceOptions;
  #sent = 0;
  #startMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isFinished = false;
  #isHeld = false;

  constructor(options: MessageSourceOptions) {
    super({ highWaterMark: Math.max(64 * 1024, options.messageBytes) });
    this.#options = options;
  }

  /** No more messages. */
  finish(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    clearTimeout(this.#timer);
    this.push(null);
  }

  /** Messages came back, so that another may go where one waits. */
  roomAgain(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this._read();
  }

  override _read(): void {
    if (this.#isFinished || this.#timer !== undefined) return;
    const { perSecond, messages, messageBytes, bytes, isFull, onSent } = this.#options;
    const nowMs = performance.now();
    this.#startMs ??= nowMs;
    if (this.#sent >= messages) {
      this.finish();
      return;
    }
    if (isFull?.() === true) {
      this.#isHeld = true;
      return;
    }
    const dueMs = perSecond === 0 ? nowMs : this.#startMs + (this.#sent * 1_000) / perSecond;
    if (dueMs > nowMs) {
      this.#timer = setTimeout(() => {
        this.#timer = undefined;
        this._read();
      }, dueMs - nowMs);
      return;
    }
    const offset = this.#sent * messageBytes;
    this.#sent += 1;
    onSent(dueMs);
    this.push(bytes(offset, messageBytes));
    if (this.#sent >= messages) this.finish();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#timer);
    this.#isFinished = true;
    done(error);
  }
}
