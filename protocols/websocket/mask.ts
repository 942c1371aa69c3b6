/**
 * Below this a plain loop over bytes wins, because it needs no typed array of words. Measured on Node 20, 32 KiB payloads:
 * bytes 860 MB/s, DataView words 4600, Int32Array 4300, Int32Array eight at a time 7900; at 16 bytes the plain loop takes
 * 30 ns and every other way 60 to 80.
 */
const WORDWISE_FROM_BYTES = 48;

const isLittleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/**
 * Masks, or unmasks, in place (RFC 6455 section 5.3). `maskKey` is 32 bits, the first byte on the wire highest.
 * `phase` (0 to 3) is the first byte's index in the key; returns the next part's, so that a payload may arrive in
 * parts.
 */
export function applyMask(bytes: Uint8Array, maskKey: number, phase: number): number {
  const length = bytes.length;
  if (maskKey !== 0) {
    if (length < WORDWISE_FROM_BYTES) maskBytes(bytes, 0, length, maskKey, phase);
    else maskWords(bytes, maskKey, phase);
  }
  return (phase + length) & 3;
}

function maskBytes(bytes: Uint8Array, start: number, end: number, maskKey: number, phase: number): void {
  for (let at = start; at < end; at++, phase++) {
    (bytes[at] as number) ^= maskKey >>> (24 - 8 * (phase & 3));
  }
}

/**
 * A word view must start at a multiple of four in the underlying buffer; a slice of a read may start anywhere.
 */
function maskWords(bytes: Uint8Array, maskKey: number, phase: number): void {
  const wordsStart = -bytes.byteOffset & 3;
  maskBytes(bytes, 0, wordsStart, maskKey, phase);

  const wordCount = (bytes.length - wordsStart) >>> 2;
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + wordsStart, wordCount);
  const turned = rotateLeft(maskKey, 8 * ((phase + wordsStart) & 3));
  maskAligned(words, isLittleEndian ? swapBytes(turned) : turned);

  const wordsEnd = wordsStart + wordCount * 4;
  maskBytes(bytes, wordsEnd, bytes.length, maskKey, phase + wordsEnd);
}

function maskAligned(words: Int32Array, key: number): void {
  const unrolledEnd = words.length & ~7;
  let at = 0;
  for (; at < unrolledEnd; at += 8) {
    (words[at] as number) ^= key;
    (words[at + 1] as number) ^= key;
    (words[at + 2] as number) ^= key;
    (words[at + 3] as number) ^= key;
    (words[at + 4] as number) ^= key;
    (words[at + 5] as number) ^= key;
    (words[at + 6] as number) ^= key;
    (words[at + 7] as number) ^= key;
  }
  for (; at < words.length; at++) (words[at] as number) ^= key;
}

function rotateLeft(word: number, bits: number): number {
  return bits === 0 ? word | 0 : (word << bits) | (word >>> (32 - bits));
}

function swapBytes(word: number): number {
  return (word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);
}
