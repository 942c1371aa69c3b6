const FIRST_BYTES = 256;

/** No bytes: where a part, a body or a rest is empty. */
export const NOTHING: Uint8Array = new Uint8Array(0);

/**
 * Bytes that come in parts and are looked at as one. Each is copied at most twice, however small the parts are; the memory is at most twice
 * what it holds. Bounds are the caller's.
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

  /** A view of all that is held. */
  get bytes(): Uint8Array {
    return this.#memory.subarray(0, this.#byteLength);
  }
}
