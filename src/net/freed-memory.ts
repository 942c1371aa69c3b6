/** With `SLUICE_POISON_READS=1` memory that is used again is overwritten as soon as it is free. Tests run with it; it costs a pass over every byte. */
const IS_POISONED = process.env.SLUICE_POISON_READS === "1";
const POISON = "\u00dbFREED MEMORY\u00db\r\n";

/** Memory to be seen during one call, and given to `poisonFreed` behind it: itself, or a copy where tests look for views that are kept. */
export function lendMemory(memory: Uint8Array): Uint8Array {
  return IS_POISONED ? Uint8Array.from(memory) : memory;
}

/**
 * Overwrites memory, or the part from `start` to before `end`, at the moment it becomes free: in tests, a view that is still in use
 * shows poison.
 */
export function poisonFreed(memory: Uint8Array, start = 0, end: number = memory.byteLength): void {
  if (!IS_POISONED) return;
  Buffer.from(memory.buffer, memory.byteOffset, memory.byteLength).fill(POISON, start, end, "latin1");
}
