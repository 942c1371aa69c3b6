const FIRST_LINE = 1_000_000_000;

const LAST_LINE = 9_999_999_999;

/** Ten digits and a line feed. */
export const LINE_BYTES = 11;

const BLOCK_LINES = 1_000;

const BLOCK_BYTES = BLOCK_LINES * LINE_BYTES;

const PREFIX_DIGITS = 7;

/** A prime: a shift by a power of two, a message or a buffer never matches the stream. */
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

  /** Like SeededStream's. */
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
