/** Call arguments live on the stack; more than this many may not fit. */
const PART_BYTES = 1_024;

/** One flat string, one character a byte. Appending characters one by one would build a deep rope. */
export function latin1Text(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let at = start; at < end; at += PART_BYTES) {
    text += String.fromCharCode.apply(null, numbersOf(bytes, at, Math.min(end, at + PART_BYTES)));
  }
  return text;
}

/** `apply` accepts typed arrays, although its type does not. */
function numbersOf(bytes: Uint8Array, start: number, end: number): number[] {
  return bytes.subarray(start, end) as unknown as number[];
}

// Network byte order. A DataView would cost an allocation per frame. Callers check the length
// first.

export function readUint16(bytes: Uint8Array, offset: number): number {
  return ((bytes[offset] as number) << 8) | (bytes[offset + 1] as number);
}

export function readUint24(bytes: Uint8Array, offset: number): number {
  return (
    ((bytes[offset] as number) << 16) | ((bytes[offset + 1] as number) << 8) | (bytes[offset + 2] as number)
  );
}

/** Unsigned: 0 to 2^32 - 1, although JavaScript's shifts are signed. */
export function readUint32(bytes: Uint8Array, offset: number): number {
  return (((bytes[offset] as number) << 24) | readUint24(bytes, offset + 1)) >>> 0;
}

export function writeUint24(target: Uint8Array, offset: number, value: number): void {
  target[offset] = value >>> 16;
  target[offset + 1] = value >>> 8;
  target[offset + 2] = value;
}

export function writeUint32(target: Uint8Array, offset: number, value: number): void {
  target[offset] = value >>> 24;
  writeUint24(target, offset + 1, value);
}

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
