import { readUint16, readUint24 } from "../bytes/index.ts";

/** RFC 8446 section 5.1. */
const RECORD_HEADER_BYTES = 5;
const HANDSHAKE_RECORD = 22;
/** Section 4. */
const HANDSHAKE_HEADER_BYTES = 4;
const CLIENT_HELLO = 1;
/** Behind the header: version and random (section 4.1.2). */
const FIXED_BYTES = 2 + 32;
/** Session id, cipher suites, compression methods: bytes of the length in front of each. */
const VECTORS = [1, 2, 1] as const;
/** RFC 6066 section 3. */
const SERVER_NAME_EXTENSION = 0;
const HOST_NAME = 0;
const MAX_HOST_NAME_BYTES = 255;

/** What a ClientHello says, as far as it is read here. */
export interface ClientHello {
  /** The server that the client wants, as it was written: not checked, not in lower case. Undefined: none is named. */
  readonly serverName: string | undefined;
}

const NAMELESS: ClientHello = { serverName: undefined };

/**
 * Reads the ClientHello that a connection begins with, in however many records; undefined while the server's name may still come. What is no
 * ClientHello, or a broken one, names no server: it is for TLS itself to refuse.
 */
export function readClientHello(bytes: Uint8Array): ClientHello | undefined {
  const hello = handshakeOf(bytes);
  if (hello === undefined) return NAMELESS;
  if (hello.byteLength < HANDSHAKE_HEADER_BYTES) return undefined;
  if (hello[0] !== CLIENT_HELLO) return NAMELESS;
  const end = HANDSHAKE_HEADER_BYTES + readUint24(hello, 1);
  let offset = HANDSHAKE_HEADER_BYTES + FIXED_BYTES;
  for (const lengthBytes of VECTORS) {
    if (offset + lengthBytes > end) return NAMELESS;
    if (offset + lengthBytes > hello.byteLength) return undefined;
    const length = lengthBytes === 1 ? (hello[offset] as number) : readUint16(hello, offset);
    offset += lengthBytes + length;
  }
  // The length of all extensions, then type and length of each.
  for (offset += 2; offset + 4 <= end; offset += 4 + readUint16(hello, offset + 2)) {
    if (offset + 4 > hello.byteLength) return undefined;
    if (readUint16(hello, offset) !== SERVER_NAME_EXTENSION) continue;
    const start = offset + 4;
    const length = readUint16(hello, offset + 2);
    if (start + length > end) return NAMELESS;
    if (start + length > hello.byteLength) return undefined;
    return { serverName: hostNameIn(hello.subarray(start, start + length)) };
  }
  return NAMELESS;
}

/** What the handshake records hold, as far as they are there; undefined: it does not begin with such records. */
function handshakeOf(bytes: Uint8Array): Uint8Array | undefined {
  const hello = new Uint8Array(bytes.byteLength);
  let length = 0;
  let offset = 0;
  while (offset < bytes.byteLength) {
    if (bytes[offset] !== HANDSHAKE_RECORD) return undefined;
    if (offset + RECORD_HEADER_BYTES > bytes.byteLength) break;
    const start = offset + RECORD_HEADER_BYTES;
    const end = start + readUint16(bytes, offset + 3);
    const fragment = bytes.subarray(start, end);
    hello.set(fragment, length);
    length += fragment.byteLength;
    offset = end;
  }
  return hello.subarray(0, length);
}

/** Of a list that holds one name, as every client writes it: the length of all, type, length, name. */
function hostNameIn(list: Uint8Array): string | undefined {
  if (list.byteLength < 5 || list[2] !== HOST_NAME) return undefined;
  const name = list.subarray(5, 5 + readUint16(list, 3));
  if (name.byteLength === 0 || name.byteLength > MAX_HOST_NAME_BYTES) return undefined;
  return String.fromCharCode(...name);
}
