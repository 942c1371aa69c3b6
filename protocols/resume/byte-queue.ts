const FIRST_BLOCK_BYTES = 1024;
const BLOCK_BYTES = 64 * 1024;
/** After a block fills up, the next is this many times larger. */
const GROWTH = 8;

interface Block {
  readonly memory: Uint8Array;
  start: number;
  end: number;
}

/**
 * A queue of bytes: append copies them, visitors see them in order, and they are dropped from the front. Beyond
 * its content it uses at most one block of 64 KiB at either end, however small the pieces were, and its spare
 * blocks.
 *
 * Memory is reused within one queue and never by another. Otherwise a peer that acknowledges bytes it has not
 * received could be sent another session's bytes, from a socket's queue that still refers to them.
 */
export class ByteQueue {
  readonly #reuses: boolean;
  readonly #onFreed: ((memory: Uint8Array) => void) | undefined;
  #blocks: Block[] = [];
  #spares: Uint8Array[] = [];
  #blockBytes = 0;
  #byteLength = 0;

  /**
   * `reuses`: callers stop using a view once its bytes are dropped. `onFreed` receives memory that
   * will be reused.
   */
  constructor(reuses: boolean, onFreed?: (memory: Uint8Array) => void) {
    this.#reuses = reuses;
    this.#onFreed = onFreed;
  }

  get byteLength(): number {
    return this.#byteLength;
  }

  /** Copies the bytes; `visit` receives each piece of the copy, in order, none longer than 64 KiB. */
  append(bytes: Uint8Array, visit?: (view: Uint8Array) => void): void {
    for (let at = 0; at < bytes.byteLength; ) {
      const block = this.#roomyBlock();
      const length = Math.min(block.memory.byteLength - block.end, bytes.byteLength - at);
      const view = block.memory.subarray(block.end, block.end + length);
      view.set(bytes.subarray(at, at + length));
      block.end += length;
      at += length;
      this.#byteLength += length;
      visit?.(view);
    }
  }

  /** Visits all queued bytes in order, from `skipBytes` on. */
  visit(skipBytes: number, visit: (view: Uint8Array) => void): void {
    let left = skipBytes;
    for (const { memory, start, end } of this.#blocks) {
      const skipped = Math.min(left, end - start);
      left -= skipped;
      if (start + skipped < end) visit(memory.subarray(start + skipped, end));
    }
  }

  /** Removes and returns the first piece; undefined if the queue is empty. */
  shift(): Uint8Array | undefined {
    const block = this.#blocks[0];
    if (block === undefined) return undefined;
    const view = block.memory.subarray(block.start, block.end);
    this.drop(view.byteLength);
    return view.byteLength === 0 ? undefined : view;
  }

  /** Drops that many bytes from the front; the queue must contain them. */
  drop(byteLength: number): void {
    this.#byteLength -= byteLength;
    let left = byteLength;
    let emptied = 0;
    for (const block of this.#blocks) {
      const length = Math.min(left, block.end - block.start);
      block.start += length;
      left -= length;
      // Without `reuses` callers may still use views of this block, so nothing overwrites it: new
      // bytes go behind them, or the block is dropped.
      const isUsedUp = block.start === block.end && (this.#reuses || block.end === block.memory.byteLength);
      if (!isUsedUp) break;
      if (this.#reuses) {
        this.#onFreed?.(block.memory);
        this.#spares.push(block.memory);
      }
      emptied += 1;
    }
    if (emptied > 0) this.#blocks.splice(0, emptied);
  }

  /** Frees spare memory. Call this after a while without new bytes. */
  trim(): void {
    this.#spares = [];
    this.#blockBytes = 0;
    if (this.#byteLength === 0) this.#blocks = [];
  }

  clear(): void {
    this.#byteLength = 0;
    this.trim();
  }

  #roomyBlock(): Block {
    const last = this.#blocks.at(-1);
    if (last !== undefined && last.end < last.memory.byteLength) return last;
    let memory = this.#spares.pop();
    // A bulk transfer does not reuse the small blocks of its beginning.
    if (memory === undefined || memory.byteLength < this.#blockBytes) {
      this.#blockBytes = Math.min(BLOCK_BYTES, Math.max(FIRST_BLOCK_BYTES, this.#blockBytes * GROWTH));
      memory = new Uint8Array(this.#blockBytes);
    }
    const block = { memory, start: 0, end: 0 };
    this.#blocks.push(block);
    return block;
  }
}
