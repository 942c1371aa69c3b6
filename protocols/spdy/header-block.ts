import { readUint32, writeUint32 } from "../bytes/index.ts";
import { ProtocolError } from "../protocol-error.ts";
import type { SpdyLimits } from "./constants.ts";

/** Names in lower case. Values of a repeated name stay joined by NUL, as on the wire. */
export type SpdyHeaders = ReadonlyMap<string, string>;

export const NO_HEADERS: SpdyHeaders = new Map();

const LENGTH_BYTES = 4;
const text = new TextEncoder();
// ignoreBOM keeps a leading U+FEFF in the value instead of dropping it.
const strictText = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Parses an inflated header block (SPDY/3 section 2.6.10). The peer chose the counts and lengths,
 * so each is checked against the real size before use (the class of CVE-2026-35469).
 */
export function decodeHeaderBlock(block: Uint8Array, limits: SpdyLimits): SpdyHeaders {
  const count = lengthAt(block, 0);
  if (count > limits.maxHeaders)
    throw new ProtocolError("too-many-headers", `a header block of ${count} headers`);
  if (count === 0 && block.length === LENGTH_BYTES) return NO_HEADERS;

  const headers = new Map<string, string>();
  let offset = LENGTH_BYTES;
  for (let index = 0; index < count; index++) {
    const nameEnd = endOfString(block, offset);
    const name = nameAt(block, offset + LENGTH_BYTES, nameEnd);
    const valueEnd = endOfString(block, nameEnd);
    if (headers.has(name)) throw malformed(`the header ${JSON.stringify(name)} twice`);
    headers.set(name, textAt(block, nameEnd + LENGTH_BYTES, valueEnd));
    offset = valueEnd;
  }
  if (offset !== block.length) throw malformed(`${block.length - offset} bytes after the last header`);
  return headers;
}

/**
 * Encodes an uncompressed block. Names become lower case: spdystream ends the session over an
 * upper-case one.
 */
export function encodeHeaderBlock(headers: SpdyHeaders): Uint8Array {
  const strings = [...headers].flatMap(([name, value]) => [
    text.encode(name.toLowerCase()),
    text.encode(value),
  ]);
  const block = new Uint8Array(
    strings.reduce((sum, bytes) => sum + LENGTH_BYTES + bytes.length, LENGTH_BYTES),
  );
  writeUint32(block, 0, headers.size);
  let offset = LENGTH_BYTES;
  for (const bytes of strings) {
    writeUint32(block, offset, bytes.length);
    block.set(bytes, offset + LENGTH_BYTES);
    offset += LENGTH_BYTES + bytes.length;
  }
  return block;
}

function endOfString(block: Uint8Array, offset: number): number {
  const stringBytes = lengthAt(block, offset);
  const end = offset + LENGTH_BYTES + stringBytes;
  if (end > block.length) throw malformed(`a string of ${stringBytes} bytes that is not there`);
  return end;
}

function lengthAt(block: Uint8Array, offset: number): number {
  if (offset + LENGTH_BYTES > block.length) throw malformed("a length that is not there");
  return readUint32(block, offset);
}

function nameAt(block: Uint8Array, start: number, end: number): string {
  if (start === end) throw malformed("an empty name");
  for (let at = start; at < end; at++) {
    const byte = block[at] as number;
    if (byte >= 0x41 && byte <= 0x5a) throw malformed("an upper-case letter in a name");
  }
  return textAt(block, start, end);
}

function textAt(block: Uint8Array, start: number, end: number): string {
  try {
    return strictText.decode(block.subarray(start, end));
  } catch {
    throw malformed("text that is not UTF-8");
  }
}

function malformed(what: string): ProtocolError {
  return new ProtocolError("malformed-header-block", `a header block with ${what}`);
}
