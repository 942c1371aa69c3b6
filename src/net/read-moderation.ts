/**
 * This many small chunks in this time, about 25 each millisecond, are a burst. Request-response
 * traffic has about 5.
 */
const BURST_CHUNKS = 64;
const BURST_MS = 2.5;
const SMALL_CHUNK_BYTES = 1024;
/**
 * A rest that collected fewer chunks was useless, because the peer waits for answers. The next one
 * comes later.
 */
const WORTHWHILE_CHUNKS = 24;
const DISCOURAGED_MS = 100;
/** Turns of the event loop that read after a rest. The memory for reads grows with each. */
const MAX_TURNS = 4;
/** More bytes than this in one rest are bulk, which arrives in large chunks anyway. */
const BULK_BYTES = 128 * 1024;

/** How long a source rests, in milliseconds. */
export const REST_MS = 1;

/**
 * Pauses a source of many small chunks for REST_MS, so that one read then brings a hundred of them,
 * like Linux' NAPI. Terminals and request-response traffic stay below the rate.
 */
export class ReadModeration {
  readonly #nowMs: () => number;
  #chunks = 0;
  #turns = 0;
  #bytes = 0;
  #burstStartMs = 0;
  #worthwhileBytes = 0;
  #discouragedUntilMs = 0;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Counts a chunk. Returns true if the source should rest now. */
  startsRest(chunkBytes: number): boolean {
    this.#chunks += 1;
    this.#bytes += chunkBytes;
    if (this.#chunks < BURST_CHUNKS || this.#worthwhileBytes > 0) return false;
    const nowMs = this.#nowMs();
    const meanBytes = this.#bytes / BURST_CHUNKS;
    const isBurst = nowMs - this.#burstStartMs < BURST_MS && meanBytes < SMALL_CHUNK_BYTES;
    this.#chunks = this.#bytes = 0;
    this.#burstStartMs = nowMs;
    if (!isBurst || nowMs < this.#discouragedUntilMs) return false;
    this.#worthwhileBytes = meanBytes * WORTHWHILE_CHUNKS;
    return true;
  }

  /** Call at the end of each turn after a rest, until it returns something other than "later". */
  afterTurn(): "rest" | "later" | "over" {
    this.#turns += 1;
    const isBulk = this.#bytes >= BULK_BYTES;
    const isWorthwhile = this.#bytes >= this.#worthwhileBytes;
    if (!isWorthwhile && this.#turns < MAX_TURNS) return "later";
    this.#chunks = this.#bytes = this.#turns = 0;
    if (isWorthwhile && !isBulk) return "rest";
    this.#worthwhileBytes = 0;
    if (!isBulk) this.#discouragedUntilMs = this.#nowMs() + DISCOURAGED_MS;
    return "over";
  }
}
