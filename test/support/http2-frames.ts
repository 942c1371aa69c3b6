/** An HTTP/2 frame (RFC 9113 section 4.1), for fewer than 65,536 bytes and streams. */
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

/**
 * Literals without indexing or Huffman codes (RFC 7541 section 6.2.2). A list may name a field
 * twice.
 */
export function headerBlockOf(
  headers: Readonly<Record<string, string>> | readonly (readonly [name: string, value: string])[],
): Buffer {
  const lines = Array.isArray(headers) ? headers : Object.entries(headers);
  const text = (value: string) => [lengthOf(value.length), Buffer.from(value, "latin1")];
  return Buffer.concat(lines.flatMap(([name, value]) => [Buffer.from([0]), ...text(name), ...text(value)]));
}

/** An integer with a prefix of seven bits (RFC 7541 section 5.1). */
function lengthOf(length: number): Buffer {
  if (length < 127) return Buffer.from([length]);
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}
