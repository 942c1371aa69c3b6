import { latin1Text } from "../../bytes/index.ts";

/**
 * Bits in each byte's code and in the end-of-string code (RFC 7541 appendix B). The code is
 * canonical, so the lengths define it.
 */
const CODE_BITS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28,
  28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7,
  8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19,
  13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
  28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
  22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23,
  22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25,
  25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
] as const;

/** The length of the shortest code. */
const MIN_CODE_BITS = 5;
const END_OF_STRING = 256;
/** A leaf is LEAF + its symbol; an inner node is the index of its first child, and the second follows it. */
const LEAF = 0x4000;
const tree = buildTree();

/**
 * Decodes Huffman-coded text, one character a byte. Undefined for an end-of-string inside the text,
 * or for padding that is 8 bits or longer or not all ones (RFC 7541 section 5.2).
 */
export function decodeHuffman(bytes: Uint8Array, start: number, end: number): string | undefined {
  const text = textOf(end - start);
  let length = 0;
  let node = 0;
  let restBits = 0;
  let isRestOnes = true;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number;
    for (let shift = 7; shift >= 0; shift--) {
      const bit = (byte >> shift) & 1;
      const next = tree[node + bit] as number;
      if (next < LEAF) {
        node = next;
        restBits++;
        isRestOnes &&= bit === 1;
        continue;
      }
      if (next === LEAF + END_OF_STRING) return undefined;
      text[length++] = next - LEAF;
      node = 0;
      restBits = 0;
      isRestOnes = true;
    }
  }
  return isRestOnes && restBits < 8 ? latin1Text(text, 0, length) : undefined;
}

/** Short texts share this buffer: allocating one each would cost more than decoding. */
const shortText = new Uint8Array(1_024);

function textOf(codedBytes: number): Uint8Array {
  const mostBytes = Math.ceil((codedBytes * 8) / MIN_CODE_BITS);
  return mostBytes <= shortText.length ? shortText : new Uint8Array(mostBytes);
}

function buildTree(): Uint16Array {
  const nodes = new Uint16Array(2 * CODE_BITS.length);
  let size = 2;
  const bySize = CODE_BITS.map((_, symbol) => symbol).sort(
    (one, other) => bitsOf(one) - bitsOf(other) || one - other,
  );
  let code = 0;
  let bits = 0;
  for (const symbol of bySize) {
    code *= 2 ** (bitsOf(symbol) - bits);
    bits = bitsOf(symbol);
    let node = 0;
    for (let shift = bits - 1; shift > 0; shift--) {
      const child = node + ((code >>> shift) & 1);
      if (nodes[child] === 0) {
        nodes[child] = size;
        size += 2;
      }
      node = nodes[child] as number;
    }
    nodes[node + (code & 1)] = LEAF + symbol;
    code++;
  }
  return nodes;
}

function bitsOf(symbol: number): number {
  return CODE_BITS[symbol] as number;
}
