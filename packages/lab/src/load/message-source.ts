import { Readable } from "node:stream";

interface MessageSourceOptions {
  readonly messageBytes: number;
  /** The number of messages; Infinity until `finish`. */
  readonly messages: number;
  /** 0: as fast as they are read. */
  readonly perSecond: number;
  /** True if no further message may be in flight: the next one waits for `roomAgain`. */
  readonly isFull?: () => boolean;
  /** The stream's bytes from an offset on. */
  readonly bytes: (offset: number, byteLength: number) => Uint8Array;
  /** Called when a message is sent; `dueMs` (performance.now) is its planned time. */
  readonly onSent: (dueMs: number) => void;
}

/**
 * A session's input. Each message has its own due time, so late ones count from then on (no
 * coordinated omission). Timers have a resolution of one millisecond.
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

  /** Ends the input. */
  finish(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    clearTimeout(this.#timer);
    this.push(null);
  }

  /** Messages have returned, so a waiting one may be sent. */
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
