import { poisonFreed } from "../net/freed-memory.ts";

/** What is framed at once, headers included: with less, a bulk transfer spends itself on writes and on waiting for them. */
const BATCH_BYTES = 256 * 1024;
/** Pieces that wait for their next use, of all connections of this process. */
const MAX_FREE = 4;
/** Smaller frames come from Node's own pool. */
const MIN_REUSED_BYTES = 4 * 1024;

const free: Buffer[] = [];

/**
 * Memory for frames that are about to be written, at least `bytes` long. Taken again from what `releaseFrameMemory` was given: at bulk
 * speed, new memory for each write costs more, in collections and page faults, than masking it.
 */
export function takeFrameMemory(bytes: number): Buffer {
  if (bytes < MIN_REUSED_BYTES || bytes > BATCH_BYTES) return Buffer.allocUnsafe(bytes);
  return free.pop() ?? Buffer.allocUnsafeSlow(BATCH_BYTES);
}

/** To be called when the write of it has been completed, and not when it has failed: the memory may be on its way still. */
export function releaseFrameMemory(memory: Buffer): void {
  if (memory.byteLength !== BATCH_BYTES || free.length >= MAX_FREE) return;
  poisonFreed(memory);
  free.push(memory);
}
