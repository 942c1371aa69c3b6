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

/** How long a buffer may stay unused. Past it, it goes to the garbage collector. */
const SPARE_MS = 10_000;
/**
 * Unused buffers of one size, enough for 256 bulk sessions with four each. Past it further ones go to
 * the garbage collector; V8 stops to collect everything after each 64 MiB of them.
 */
const MAX_SPARE_MEMORIES = 1_024;

export type Memory = ReturnType<typeof Buffer.allocUnsafeSlow>;

/** Buffers of one size that sockets take and give back. */
export class SpareMemories {
  readonly #byteLength: number;
  readonly #spare: Memory[] = [];
  /** The fewest buffers that were unused at once since the last `#look`. */
  #unused = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(byteLength: number) {
    this.#byteLength = byteLength;
  }

  take(): Memory {
    const memory = this.#spare.pop();
    if (this.#spare.length < this.#unused) this.#unused = this.#spare.length;
    return memory ?? Buffer.allocUnsafeSlow(this.#byteLength);
  }

  /** Takes back a buffer from `take`. It may be overwritten from now on. */
  give(memory: Memory): void {
    poisonFreed(memory);
    if (this.#spare.length >= MAX_SPARE_MEMORIES) return;
    this.#spare.push(memory);
    this.#timer ??= setInterval(this.#look, SPARE_MS).unref();
  }

  readonly #look = (): void => {
    this.#spare.splice(0, this.#unused);
    this.#unused = this.#spare.length;
    if (this.#unused > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  };
}
