import { poisonFreed } from "./net/freed-memory.ts";

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
