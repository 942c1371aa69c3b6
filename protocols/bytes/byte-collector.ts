const FIRST_BYTES = 256;

/** The empty array, shared by all empty parts and bodies. */
export const NOTHING: Uint8Array = new Uint8Array(0);

/**
 * Joins bytes that arrive in parts. Copies each byte at most twice, however small the parts, and
 * allocates at most twice the content. Callers set the bounds.
 */
export class ByteCollector {
  #memory = new Uint8Array(0);
  #byteLength = 0;

  get byteLength(): number {
    return this.#byteLength;
  }

  append(part: Uint8Array): void {
    const byteLength = this.#byteLength + part.length;
    if (byteLength > this.#memory.length) {
      const larger = new Uint8Array(Math.max(byteLength, 2 * this.#memory.length, FIRST_BYTES));
      larger.set(this.#memory.subarray(0, this.#byteLength));
      this.#memory = larger;
    }
    this.#memory.set(part, this.#byteLength);
    this.#byteLength = byteLength;
  }

  /** A view of all collected bytes. */
  get bytes(): Uint8Array {
    return this.#memory.subarray(0, this.#byteLength);
  }
}
