/** The size of a slab. Slabs are large because each one is a message to the thread. */
export const SLAB_BYTES: number = 256 * 1024;
/** Before each part: session, kind, time and length. */
const FRAME_HEAD_BYTES = 20;

/** `resize`: columns and rows, two bytes each. `event`: a code, then its text in UTF-8. */
export type PartKind = "stdout" | "stderr" | "input" | "resize" | "event";
const KINDS: readonly PartKind[] = ["stdout", "stderr", "input", "resize", "event"];

export interface SlabPart {
  readonly handle: number;
  readonly kind: PartKind;
  readonly timeMs: number;
  readonly bytes: Uint8Array;
}

/** Parts of several sessions, copied one after another into one buffer. */
export class Slab {
  readonly buffer: ArrayBufferLike;
  readonly #view: DataView;
  readonly #bytes: Buffer;
  /** The bytes of each session. */
  bytes = new Map<number, number>();
  used = 0;

  constructor(buffer: ArrayBufferLike = new ArrayBuffer(SLAB_BYTES)) {
    this.buffer = buffer;
    this.#view = new DataView(buffer);
    this.#bytes = Buffer.from(buffer);
  }

  /** Forgets the content. */
  reset(): void {
    this.used = 0;
    this.bytes = new Map();
  }

  /** A copy of the content. */
  copy(): ArrayBuffer {
    return new Uint8Array(this.#bytes.subarray(0, this.used)).buffer;
  }

  /** True if a part of this size fits completely. */
  fits(bytes: number): boolean {
    return this.used + FRAME_HEAD_BYTES + bytes <= SLAB_BYTES;
  }

  /** Copies as much of `part` as fits. Returns the number of bytes copied, 0 if the slab is full. */
  add(handle: number, kind: PartKind, timeMs: number, part: Uint8Array): number {
    const room = SLAB_BYTES - this.used - FRAME_HEAD_BYTES;
    if (room <= 0) return 0;
    const length = Math.min(room, part.byteLength);
    const view = this.#view;
    view.setUint32(this.used, handle);
    view.setUint32(this.used + 4, KINDS.indexOf(kind));
    view.setFloat64(this.used + 8, timeMs);
    view.setUint32(this.used + 16, length);
    const source = length === part.byteLength ? part : part.subarray(0, length);
    const start = this.used + FRAME_HEAD_BYTES;
    this.used = start + length;
    // `set` copies words or bytes to shared memory, which costs three or ten times as much.
    if (length > 0) this.#bytes.fill(source, start, this.used);
    this.bytes.set(handle, (this.bytes.get(handle) ?? 0) + length);
    return length;
  }
}

/** The parts of a slab, in order. Their `bytes` are views of the buffer. */
export function* partsOf(buffer: ArrayBufferLike, used: number): Generator<SlabPart> {
  const view = new DataView(buffer);
  for (let at = 0; at < used; ) {
    const length = view.getUint32(at + 16);
    yield {
      handle: view.getUint32(at),
      kind: KINDS[view.getUint32(at + 4)] as PartKind,
      timeMs: view.getFloat64(at + 8),
      bytes: new Uint8Array(buffer, at + FRAME_HEAD_BYTES, length),
    };
    at += FRAME_HEAD_BYTES + length;
  }
}

/**
 * How many slabs the thread has taken, in memory that it shares with the event loop, so that not
 * each of them wakes the event loop. The count goes back to 0 after 2^32 slabs.
 */
export class TakenSlabs {
  /** The count, and the count at which the event loop is told. */
  readonly numbers: Int32Array<SharedArrayBuffer>;

  constructor(numbers: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(8))) {
    this.numbers = numbers;
  }

  get count(): number {
    return Atomics.load(this.numbers, 0);
  }

  /** The thread no longer reads one more slab. Returns true if it must tell the event loop. */
  add(): boolean {
    const count = (Atomics.add(this.numbers, 0, 1) + 1) | 0;
    return count === Atomics.load(this.numbers, 1);
  }

  /** The thread is to tell at this count. Returns false if it has it already. */
  tellAt(count: number): boolean {
    Atomics.store(this.numbers, 1, count);
    return ((count - this.count) | 0) > 0;
  }
}

/**
 * Slabs in memory that is shared with the thread and used again. While the thread has all of them,
 * it gets other memory, which does not come back.
 */
const SHARED_SLABS = 16;
/** Sessions wait for room no longer than a slow disk needs for so many slabs. */
const TOLD_AFTER = 8;

interface GivenSlab {
  /** Undefined if its memory does not come back. */
  readonly slab: Slab | undefined;
  /** The bytes of each session. */
  readonly bytes: ReadonlyMap<number, number>;
}

/** The event loop's slabs: the one that is being filled, and those that the thread has. */
export class SlabPool {
  readonly taken: TakenSlabs = new TakenSlabs();
  readonly #free: Slab[] = [];
  /** Oldest first. */
  readonly #away: GivenSlab[] = [];
  #shared = 0;
  #before = 0;
  #current: Slab = this.#next();

  get current(): Slab {
    return this.#current;
  }

  /** Slabs that the thread had at the last `back`. */
  get away(): number {
    return this.#away.length;
  }

  /** Returns the current slab's memory for the thread, or a copy that is only as large as its content. */
  give(isCopied: boolean): { readonly buffer: ArrayBufferLike; readonly transfer: readonly ArrayBuffer[] } {
    const slab = this.#current;
    const buffer = isCopied ? slab.copy() : slab.buffer;
    const isShared = buffer instanceof SharedArrayBuffer;
    this.#away.push({ slab: isShared ? slab : undefined, bytes: slab.bytes });
    if (!isCopied) this.#current = this.#next();
    this.#current.reset();
    return { buffer, transfer: isShared ? [] : [buffer] };
  }

  /** Calls back with the bytes of each session in slabs that the thread has taken since. */
  back(onBytes: (handle: number, bytes: number) => void): void {
    const count = (this.taken.count - this.#before) | 0;
    if (count === 0) return;
    this.#before = (this.#before + count) | 0;
    for (const { slab, bytes } of this.#away.splice(0, count)) {
      if (slab !== undefined) this.#free.push(slab);
      for (const [handle, sum] of bytes) onBytes(handle, sum);
    }
  }

  /**
   * The thread is to tell when it has one slab left, or none, or has taken TOLD_AFTER. Returns
   * false if it is so already.
   */
  tellSoon(): boolean {
    const { length } = this.#away;
    return this.taken.tellAt((this.#before + Math.min(TOLD_AFTER, length - (length > 1 ? 1 : 0))) | 0);
  }

  #next(): Slab {
    const slab = this.#free.pop();
    if (slab !== undefined) return slab;
    if (this.#shared === SHARED_SLABS) return new Slab();
    this.#shared += 1;
    return new Slab(new SharedArrayBuffer(SLAB_BYTES));
  }
}
