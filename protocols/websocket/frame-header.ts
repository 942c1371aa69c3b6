import { readUint16, readUint32, writeUint32 } from "../bytes/index.ts";

//  0                   1                   2                   3
// +-+-+-+-+-------+-+-------------+-------------------------------+
// |F|R|R|R| opcode|M| length (7)  |  length (16 if 126, 64 if 127)|
// |I|S|S|S|  (4)  |A|             +-------------------------------+
// |N|V|V|V|       |S|             |  masking key (32, if MASK)    |
// | |1|2|3|       |K|             +-------------------------------+
// +-+-+-+-+-------+-+-------------+  payload                      |   RFC 6455 section 5.2

export const OPCODE = { CONTINUATION: 0, TEXT: 1, BINARY: 2, CLOSE: 8, PING: 9, PONG: 10 } as const;

export const FIN_BIT = 0x80;
export const RSV_BITS = 0x70;
export const OPCODE_BITS = 0x0f;
export const MASK_BIT = 0x80;
export const LENGTH_BITS = 0x7f;

/** The fixed start of every header, which determines the header's length. */
export const FRAME_START_BYTES = 2;
/** The longest header: start, 64-bit length, masking key. */
export const MAX_FRAME_HEADER_BYTES = 14;
/** RFC 6455 section 5.5: a control frame fits in the 7-bit length and is never fragmented. */
export const MAX_CONTROL_PAYLOAD_BYTES = 125;

/** The data opcodes are 0 to 7, the control opcodes 8 to 15 (RFC 6455 section 5.2). */
export function isControlOpcode(opcode: number): boolean {
  return opcode >= OPCODE.CLOSE;
}

const LENGTH_IS_16_BITS = 126;
const LENGTH_IS_64_BITS = 127;
export const MASK_KEY_BYTES = 4;

/** Where the header's length ends (2, 4 or 10), from its second byte; a mask key follows. */
export function lengthEnd(secondByte: number): number {
  const length = secondByte & LENGTH_BITS;
  return FRAME_START_BYTES + (length === LENGTH_IS_16_BITS ? 2 : length === LENGTH_IS_64_BITS ? 8 : 0);
}

/**
 * The payload length of a complete header. Accepts lengths that are not minimal. Lengths of 2^53
 * and more are rounded, but never below 2^53, so the caller's limit refuses them and with them the
 * forbidden top bit.
 */
export function payloadBytesOf(header: Uint8Array): number {
  const length = (header[1] as number) & LENGTH_BITS;
  if (length === LENGTH_IS_16_BITS) return readUint16(header, FRAME_START_BYTES);
  if (length === LENGTH_IS_64_BITS) {
    return readUint32(header, FRAME_START_BYTES) * 0x1_0000_0000 + readUint32(header, FRAME_START_BYTES + 4);
  }
  return length;
}

/**
 * Writes the header of an unmasked frame (a server's) and returns its length: 2, 4 or 10 bytes. The
 * target must have room.
 */
export function writeFrameHeader(
  target: Uint8Array,
  offset: number,
  opcode: number,
  payloadBytes: number,
  fin: boolean,
): number {
  return writeStart(target, offset, fin ? FIN_BIT | opcode : opcode, payloadBytes, 0);
}

/**
 * Writes the header of a masked frame (a client's) and returns its length: 6, 8 or 14 bytes.
 * `maskKey` is 32 bits, the first byte on the wire highest, and must be unpredictable (RFC 6455
 * section 5.3); `applyMask` masks the payload.
 */
// oxlint-disable-next-line eslint/max-params -- an object for each frame would cost more than it says.
export function writeMaskedFrameHeader(
  target: Uint8Array,
  offset: number,
  opcode: number,
  payloadBytes: number,
  fin: boolean,
  maskKey: number,
): number {
  const startBytes = writeStart(target, offset, fin ? FIN_BIT | opcode : opcode, payloadBytes, MASK_BIT);
  writeUint32(target, offset + startBytes, maskKey);
  return startBytes + MASK_KEY_BYTES;
}

function writeStart(
  target: Uint8Array,
  offset: number,
  firstByte: number,
  payloadBytes: number,
  maskBit: number,
): number {
  target[offset] = firstByte;
  if (payloadBytes <= MAX_CONTROL_PAYLOAD_BYTES) {
    target[offset + 1] = maskBit | payloadBytes;
    return FRAME_START_BYTES;
  }
  if (payloadBytes <= 0xffff) {
    target[offset + 1] = maskBit | LENGTH_IS_16_BITS;
    target[offset + 2] = payloadBytes >>> 8;
    target[offset + 3] = payloadBytes;
    return FRAME_START_BYTES + 2;
  }
  target[offset + 1] = maskBit | LENGTH_IS_64_BITS;
  writeUint32(target, offset + 2, Math.floor(payloadBytes / 0x1_0000_0000));
  writeUint32(target, offset + 6, payloadBytes >>> 0);
  return FRAME_START_BYTES + 8;
}

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
