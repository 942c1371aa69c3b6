const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");

/** A version 2 header with these bytes after its length. */
export function binaryHeader(
  versionAndCommand: number,
  familyAndTransport: number,
  content: readonly number[],
): Buffer {
  const fixed = [versionAndCommand, familyAndTransport, content.length >> 8, content.length & 0xff];
  return Buffer.concat([SIGNATURE, Buffer.from(fixed), Buffer.from(content)]);
}

export function tlv(type: number, value: ArrayLike<number>): number[] {
  return [type, value.length >> 8, value.length & 0xff, ...Array.from(value)];
}

/** The same header with a checksum as its last TLV. */
export function withChecksum(
  versionAndCommand: number,
  familyAndTransport: number,
  content: readonly number[],
): Buffer {
  const header = binaryHeader(versionAndCommand, familyAndTransport, [...content, ...tlv(3, [0, 0, 0, 0])]);
  header.writeUInt32BE(crc32c(header), header.length - 4);
  return header;
}

/** CRC-32C, bit by bit: independent of the decoder's table. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
