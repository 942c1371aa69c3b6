/**
 * With `SLUICE_POISON_READS=1` reused memory is overwritten as soon as it is free. The tests set it;
 * it costs a pass over every byte.
 */
const IS_POISONED = process.env.SLUICE_POISON_READS === "1";
const POISON = "\u00dbFREED MEMORY\u00db\r\n";

/**
 * Memory for the duration of one call; pass it to `poisonFreed` afterwards. When poisoning, it is a
 * copy, so that a view kept too long is found.
 */
export function lendMemory(memory: Uint8Array): Uint8Array {
  return IS_POISONED ? Uint8Array.from(memory) : memory;
}

/**
 * Overwrites memory, or its part from `start` to before `end`, when it becomes free, so that in tests
 * a view still in use shows poison.
 */
export function poisonFreed(memory: Uint8Array, start = 0, end: number = memory.byteLength): void {
  if (!IS_POISONED) return;
  Buffer.from(memory.buffer, memory.byteOffset, memory.byteLength).fill(POISON, start, end, "latin1");
}
