import { ByteCollector, readUint16, readUint24 } from "../bytes/index.ts";

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
const EXTENSIONS_LENGTH_BYTES = 2;
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
 * Reads a connection's ClientHello, split into any records and reads. Anything else, or a malformed
 * one, yields no server name; TLS itself refuses it.
 */
export class ClientHelloReader {
  readonly #message = new ByteCollector();
  readonly #header = new Uint8Array(RECORD_HEADER_BYTES);
  #headerBytes = 0;
  /** Of the record that is being read. */
  #recordBytesLeft = 0;
  /** Where the next vector of the message, or behind all of them the next extension, begins. */
  #offset = HANDSHAKE_HEADER_BYTES + FIXED_BYTES;
  #vectorsRead = 0;

  /** Undefined while the server's name may still come. */
  push(bytes: Uint8Array): ClientHello | undefined {
    const isHandshake = this.#collect(bytes);
    // A record of another kind behind a whole ClientHello is ordinary: early data and ChangeCipherSpec follow it at once.
    return this.#read() ?? (isHandshake ? undefined : NAMELESS);
  }

  /** Takes what handshake records hold; false where a record of another kind begins. */
  #collect(bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length; ) {
      if (this.#recordBytesLeft > 0) {
        const fragment = bytes.subarray(at, at + this.#recordBytesLeft);
        this.#message.append(fragment);
        this.#recordBytesLeft -= fragment.length;
        at += fragment.length;
        continue;
      }
      if (this.#headerBytes === 0 && bytes[at] !== HANDSHAKE_RECORD) return false;
      this.#header[this.#headerBytes++] = bytes[at++] as number;
      if (this.#headerBytes < RECORD_HEADER_BYTES) continue;
      this.#headerBytes = 0;
      this.#recordBytesLeft = readUint16(this.#header, 3);
    }
    return true;
  }

  #read(): ClientHello | undefined {
    const hello = this.#message.bytes;
    if (hello.byteLength < HANDSHAKE_HEADER_BYTES) return undefined;
    if (hello[0] !== CLIENT_HELLO) return NAMELESS;
    const end = HANDSHAKE_HEADER_BYTES + readUint24(hello, 1);
    for (; this.#vectorsRead < VECTORS.length; this.#vectorsRead += 1) {
      const lengthBytes = VECTORS[this.#vectorsRead] as (typeof VECTORS)[number];
      if (this.#offset + lengthBytes > end) return NAMELESS;
      if (this.#offset + lengthBytes > hello.byteLength) return undefined;
      const length = lengthBytes === 1 ? (hello[this.#offset] as number) : readUint16(hello, this.#offset);
      // The length of all extensions stands behind the last vector.
      const isLast = this.#vectorsRead === VECTORS.length - 1;
      this.#offset += lengthBytes + length + (isLast ? EXTENSIONS_LENGTH_BYTES : 0);
    }
    // Type and length of each.
    while (this.#offset + 4 <= end) {
      if (this.#offset + 4 > hello.byteLength) return undefined;
      const start = this.#offset + 4;
      const length = readUint16(hello, this.#offset + 2);
      if (readUint16(hello, this.#offset) === SERVER_NAME_EXTENSION) {
        if (start + length > end) return NAMELESS;
        if (start + length > hello.byteLength) return undefined;
        return { serverName: hostNameIn(hello.subarray(start, start + length)) };
      }
      this.#offset = start + length;
    }
    return NAMELESS;
  }
}

/** Of a list that holds one name, as every client writes it: the length of all, type, length, name. */
function hostNameIn(list: Uint8Array): string | undefined {
  if (list.byteLength < 5 || list[2] !== HOST_NAME) return undefined;
  const name = list.subarray(5, 5 + readUint16(list, 3));
  if (name.byteLength === 0 || name.byteLength > MAX_HOST_NAME_BYTES) return undefined;
  return String.fromCharCode(...name);
}
