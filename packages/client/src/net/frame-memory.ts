import { randomFillSync } from "node:crypto";
import { poisonFreed } from "./freed-memory.ts";

/** The size of one write, headers included; smaller ones slow a bulk transfer down. */
const BATCH_BYTES = 256 * 1024;
/** Free buffers kept for the whole process. */
const MAX_FREE = 4;
/** Smaller frames come from Node's own pool. */
const MIN_REUSED_BYTES = 4 * 1024;

const free: Buffer[] = [];

/**
 * Returns at least `bytes` of memory for frames, reused from `releaseFrameMemory`. At bulk speed,
 * fresh memory for each write costs more in garbage collection and page faults than masking does.
 */
export function takeFrameMemory(bytes: number): Buffer {
  if (bytes < MIN_REUSED_BYTES || bytes > BATCH_BYTES) return Buffer.allocUnsafe(bytes);
  return free.pop() ?? Buffer.allocUnsafeSlow(BATCH_BYTES);
}

/**
 * Call it after the write completed. Never after a failed one: the kernel may still read the
 * memory.
 */
export function releaseFrameMemory(memory: Buffer): void {
  if (memory.byteLength !== BATCH_BYTES || free.length >= MAX_FREE) return;
  poisonFreed(memory);
  free.push(memory);
}

const SLAB_BYTES = 8 * 1024;

/**
 * Allocates frame headers from shared slabs. A full slab is replaced, not reused, because the kernel
 * may not have taken its headers yet; its last view frees it.
 */
class HeaderSlab {
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  #used = 0;

  /** Returns `length` bytes (at most SLAB_BYTES) with undefined content. */
  take(length: number): Buffer {
    if (this.#used + length > SLAB_BYTES) {
      this.#slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
      this.#used = 0;
    }
    const view = this.#slab.subarray(this.#used, this.#used + length);
    this.#used += length;
    return view;
  }
}

/** One slab serves every session of the process, since JavaScript runs one at a time. */
export const headerSlab: HeaderSlab = new HeaderSlab();

const maskKeys = new Uint32Array(256);
let usedMaskKeys = maskKeys.length;

/**
 * Unpredictable (RFC 6455 section 5.3). Drawn in batches, since a call of the random source costs more
 * than a small frame.
 */
export function nextMaskKey(): number {
  if (usedMaskKeys === maskKeys.length) {
    randomFillSync(maskKeys);
    usedMaskKeys = 0;
  }
  return maskKeys[usedMaskKeys++] as number;
}
