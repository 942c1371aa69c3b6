import { Readable } from "node:stream";

const FIRST_LINE = 1_000_000_000;

const LAST_LINE = 9_999_999_999;

/** Ten digits and a line feed. */
export const LINE_BYTES = 11;

const BLOCK_LINES = 1_000;

const BLOCK_BYTES = BLOCK_LINES * LINE_BYTES;

const PREFIX_DIGITS = 7;

/** A prime, so that a shift by a power of two, a message or a buffer never matches the stream. */
const POOL_BYTES = 1_048_573;
const SESSION_STRIDE = 7_919;

const pools = new Map<number, Buffer>();

/**
 * Bytes reproducible from the seed at any offset: each session enters a repeated pool of
 * pseudo-random bytes at its own offset. So lost, doubled, reordered and changed bytes show.
 */
export class SeededStream {
  readonly #pool: Buffer;
  readonly #start: number;

  /** `seed`: 32 bits. */
  constructor(seed: number, session: number) {
    this.#pool = poolOf(seed);
    this.#start = (session * SESSION_STRIDE) % POOL_BYTES;
  }

  /** The bytes from `offset` on; read-only. */
  bytes(offset: number, byteLength: number): Buffer {
    const at = (this.#start + offset) % POOL_BYTES;
    if (at + byteLength <= POOL_BYTES) return this.#pool.subarray(at, at + byteLength);
    const parts = [this.#pool.subarray(at)];
    let left = byteLength - (POOL_BYTES - at);
    for (; left > POOL_BYTES; left -= POOL_BYTES) parts.push(this.#pool);
    return Buffer.concat([...parts, this.#pool.subarray(0, left)]);
  }

  /** The offset of the first wrong byte, from the stream's start; -1 if all are right. */
  firstWrong(offset: number, part: Uint8Array): number {
    const expected = this.bytes(offset, part.byteLength);
    if (expected.equals(part)) return -1;
    return offset + expected.findIndex((byte, index) => byte !== part[index]);
  }
}

function poolOf(seed: number): Buffer {
  const known = pools.get(seed);
  if (known !== undefined) return known;
  const pool = Buffer.allocUnsafe(POOL_BYTES);
  // xorshift32 (Marsaglia 2003); its state must not start at 0.
  let state = (seed ^ 0x9e3779b9) | 0 || 1;
  for (let index = 0; index < POOL_BYTES; index++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    pool[index] = state >>> 24;
  }
  pools.set(seed, pool);
  return pool;
}

/**
 * The output of `seq 1000000000 LAST`: ten digits a line, so that every offset has a known byte.
 * Every container with coreutils or busybox has the command.
 */
export class LineSequence {
  /** A thousand lines; their last three digits never change. */
  readonly #block: Buffer = Buffer.from(
    Array.from({ length: BLOCK_LINES }, (_, line) => `${FIRST_LINE + line}\n`).join(""),
  );
  #blockIndex = 0;

  /** The command for this many bytes, rounded up to whole lines; undefined: the longest possible. */
  static command(byteLength: number | undefined): string[] {
    const last = byteLength === undefined ? LAST_LINE : FIRST_LINE + Math.ceil(byteLength / LINE_BYTES) - 1;
    return ["seq", String(FIRST_LINE), String(last)];
  }

  /** The same function as SeededStream's. */
  firstWrong(offset: number, part: Uint8Array): number {
    for (let done = 0; done < part.byteLength; ) {
      const at = offset + done;
      this.#select(Math.floor(at / BLOCK_BYTES));
      const expected = this.#block.subarray(at % BLOCK_BYTES);
      const compared = part.subarray(done, done + expected.byteLength);
      if (!expected.subarray(0, compared.byteLength).equals(compared)) {
        return at + expected.findIndex((byte, index) => byte !== compared[index]);
      }
      done += compared.byteLength;
    }
    return -1;
  }

  #select(blockIndex: number): void {
    if (blockIndex === this.#blockIndex) return;
    this.#blockIndex = blockIndex;
    const prefix = Buffer.from(String(FIRST_LINE / BLOCK_LINES + blockIndex), "latin1");
    for (let at = 0; at < BLOCK_BYTES; at += LINE_BYTES) prefix.copy(this.#block, at, 0, PREFIX_DIGITS);
  }
}

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

  /** Call this when messages have returned: a waiting one may then be sent. */
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
