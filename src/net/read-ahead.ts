/**
 * Output read from a node beyond what its client took, so that input can follow; kernels buffer as
 * much. Past it the input continues.
 */
export const READ_AHEAD_BYTES: number = 16 * 1024 * 1024;
/**
 * Output read ahead in all sessions of one user, at most a quarter of what other users leave. Past
 * it the input continues.
 */
const MAX_READ_AHEAD_BYTES_PER_USER = 64 * 1024 * 1024;
/** Output read ahead in all sessions of the process. Past it the input continues. */
const MAX_TOTAL_READ_AHEAD_BYTES = 256 * 1024 * 1024;
/** A sink that stays full this long has a slow reader; a busy sink empties within a few milliseconds. */
const STALL_MS = 10;

let totalBytes = 0;
/** Bytes read ahead by user, without users that have none. */
const bytesByUser = new Map<string, number>();

/**
 * On request, lets `feed` read a source whose sink is full, so that the source's queue moves here.
 * A user may take a quarter of what other users leave; a user's sources share likewise.
 */
export class ReadAhead {
  readonly #user: string;
  readonly #nowMs: () => number;
  #isWanted = false;
  #isBehind = false;
  #bytes = 0;
  #fullSinceMs: number | undefined;
  #resume: () => void = () => {};

  constructor(user: string, nowMs: () => number = () => performance.now()) {
    this.#user = user;
    this.#nowMs = nowMs;
  }

  /** True if the sink's reader is slow, so the source may have queued unread bytes. */
  get isBehind(): boolean {
    return this.#isBehind || this.#hasStalled;
  }

  /** True if the sink is full, whether or not the source is read ahead. */
  get isFull(): boolean {
    return this.#fullSinceMs !== undefined;
  }

  /** True if no more may be read ahead. */
  get isExhausted(): boolean {
    const userBytes = bytesByUser.get(this.#user) ?? 0;
    const forUser = partOf(MAX_READ_AHEAD_BYTES_PER_USER, MAX_TOTAL_READ_AHEAD_BYTES, totalBytes - userBytes);
    const ofOthers = userBytes - this.#bytes + MAX_READ_AHEAD_BYTES_PER_USER - forUser;
    return this.#bytes >= partOf(READ_AHEAD_BYTES, MAX_READ_AHEAD_BYTES_PER_USER, ofOthers);
  }

  /** True if the source may be read although its sink is full. */
  get mayRead(): boolean {
    return this.#isWanted && !this.isExhausted;
  }

  /** For `feed`: `resume` reads the source again. */
  onWanted(resume: () => void): void {
    this.#resume = resume;
  }

  /** Reads ahead until `stop` is called. */
  start(): void {
    this.#isWanted = true;
    this.#resume();
  }

  stop(): void {
    this.#isWanted = false;
  }

  /** The source's queue is empty: forgets earlier stalls of its sink. */
  drained(): void {
    this.#isBehind = false;
    if (this.#fullSinceMs !== undefined) this.#fullSinceMs = this.#nowMs();
  }

  /** A chunk filled the sink. */
  filled(chunkBytes: number): void {
    if (this.#fullSinceMs === undefined) {
      this.#fullSinceMs = this.#nowMs();
      return;
    }
    this.#count(chunkBytes);
  }

  /** The sink has taken everything, or has been destroyed. */
  emptied(): void {
    if (this.#hasStalled) this.#isBehind = true;
    this.#fullSinceMs = undefined;
    if (this.#bytes > 0) this.#count(-this.#bytes);
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    totalBytes += bytes;
    const userBytes = (bytesByUser.get(this.#user) ?? 0) + bytes;
    if (userBytes === 0) bytesByUser.delete(this.#user);
    else bytesByUser.set(this.#user, userBytes);
  }

  get #hasStalled(): boolean {
    return this.#fullSinceMs !== undefined && this.#nowMs() - this.#fullSinceMs >= STALL_MS;
  }
}

/** `share` of `whole`, scaled to what others leave of `whole`, in bytes. */
function partOf(share: number, whole: number, heldByOthers: number): number {
  return Math.max(0, ((whole - heldByOthers) * share) / whole);
}

/** Bytes that all sources of the process have read ahead. */
export function totalReadAhead(): number {
  return totalBytes;
}
