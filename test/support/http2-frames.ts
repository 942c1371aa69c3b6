/** RFC 9113 section 4.1, of fewer than 65,536 bytes and streams. */
export function frameOf(
  type: number,
  flags: number,
  streamId: number,
  payload: Uint8Array = new Uint8Array(),
): Buffer {
  const header = Buffer.from([0, 0, 0, type, flags, 0, 0, 0, 0]);
  header.writeUInt16BE(payload.length, 1);
  header.writeUInt16BE(streamId, 7);
  return Buffer.concat([header, payload]);
}

/** Literals that are not indexed, without Huffman codes (RFC 7541 section 6.2.2), each shorter than 127 bytes. */
export function headerBlockOf(headers: Readonly<Record<string, string>>): Buffer {
  const text = (value: string) => [Buffer.from([value.length]), Buffer.from(value, "latin1")];
  return Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), ...text(name), ...text(value)]),
  );
}
