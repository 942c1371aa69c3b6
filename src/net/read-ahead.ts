/** What one source may be read past what its sink takes. Kernels hold about as much between a node and us. */
export const READ_AHEAD_BYTES: number = 16 * 1024 * 1024;
/** The same of all sources of the process together. */
export const MAX_TOTAL_READ_AHEAD_BYTES: number = 256 * 1024 * 1024;
/** A sink that was full for so long belongs to a slow reader; a busy one fills and empties within a few milliseconds. */
const STALL_MS = 10;

let totalBytes = 0;

/** Lets `feed` read a source whose sink is full, when that is asked for: what was queued waits here. */
export class ReadAhead {
  readonly #nowMs: () => number;
  #isWanted = false;
  #isBehind = false;
  #bytes = 0;
  #fullSinceMs: number | undefined;
  #resume: () => void = () => {};

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** The sink's reader is slow, so that the source may have queued what was not read yet. */
  get isBehind(): boolean {
    return this.#isBehind || this.#hasStalled;
  }

  /** The source is not read, or read ahead. */
  get isFull(): boolean {
    return this.#fullSinceMs !== undefined;
  }

  /** No more may be read past what the sink takes. */
  get isExhausted(): boolean {
    return this.#bytes >= READ_AHEAD_BYTES || totalBytes >= MAX_TOTAL_READ_AHEAD_BYTES;
  }

  /** The source may be read though its sink is full. */
  get mayRead(): boolean {
    return this.#isWanted && !this.isExhausted;
  }

  /** For `feed`: how the source is read again. */
  onWanted(resume: () => void): void {
    this.#resume = resume;
  }

  /** Reads ahead until `stop`. */
  start(): void {
    this.#isWanted = true;
    this.#resume();
  }

  stop(): void {
    this.#isWanted = false;
  }

  /** The source has nothing queued any more: what was known of its sink is over. */
  drained(): void {
    this.#isBehind = false;
    if (this.#fullSinceMs !== undefined) this.#fullSinceMs = this.#nowMs();
  }

  /** A chunk left the sink full. */
  filled(chunkBytes: number): void {
    if (this.#fullSinceMs === undefined) {
      this.#fullSinceMs = this.#nowMs();
      return;
    }
    this.#bytes += chunkBytes;
    totalBytes += chunkBytes;
  }

  /** The sink has taken everything, or is gone. */
  emptied(): void {
    if (this.#hasStalled) this.#isBehind = true;
    this.#fullSinceMs = undefined;
    totalBytes -= this.#bytes;
    this.#bytes = 0;
  }

  get #hasStalled(): boolean {
    return this.#fullSinceMs !== undefined && this.#nowMs() - this.#fullSinceMs >= STALL_MS;
  }
}

/** What all sources of the process have read ahead, in bytes. */
export function totalReadAhead(): number {
  return totalBytes;
}
