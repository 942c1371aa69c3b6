/** Castagnoli's polynomial, bit-reversed (RFC 3309 appendix B). */
const POLYNOMIAL = 0x82f63b78;
let remainders: Uint32Array | undefined;

/** CRC-32C as an unsigned integer. */
export function crc32c(bytes: Uint8Array): number {
  remainders ??= Uint32Array.from({ length: 256 }, (_, byte) => remainderOf(byte));
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (remainders[(crc ^ byte) & 0xff] as number);
  return (crc ^ 0xffffffff) >>> 0;
}

function remainderOf(byte: number): number {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++)
    remainder = remainder & 1 ? (remainder >>> 1) ^ POLYNOMIAL : remainder >>> 1;
  return remainder;
}
