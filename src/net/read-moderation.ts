/** So many chunks in so little time are a burst, where they are small: 25 for each millisecond. One that waits for answers has some 5. */
const BURST_CHUNKS = 64;
const BURST_MS = 2.5;
const SMALL_CHUNK_BYTES = 1024;
/** A pause that brought fewer chunks was useless: the peer waits for answers. The next one comes after a while. */
const WORTHWHILE_CHUNKS = 24;
const DISCOURAGED_MS = 100;
/** Turns of the event loop in which what gathered is read: the memory that is read into grows with each. */
const MAX_TURNS = 4;
/** More than that in one rest is bulk, which comes in large chunks by itself. */
const BULK_BYTES = 128 * 1024;

/** How long a source rests. */
export const REST_MS = 1;

/**
 * Decides when a source of many small chunks rests for REST_MS, so that one read brings a hundred, as Linux' NAPI moderates
 * interrupts. Terminals and request-response traffic stay below the rate.
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

  /** Counts a chunk; `true`: the source should rest now. */
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

  /** To be asked at the end of each turn after a rest, until it says something else than "later". */
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
