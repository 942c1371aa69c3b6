import { ByteCollector, readUint16, readUint24 } from "../bytes/index.ts";

/** RFC 8446 section 5.1. */
const RECORD_HEADER_BYTES = 5;
const HANDSHAKE_RECORD = 22;
/** Section 4. */
const HANDSHAKE_HEADER_BYTES = 4;
const CLIENT_HELLO = 1;
/** Version and random follow the header (section 4.1.2). */
const FIXED_BYTES = 2 + 32;
/** Session id, cipher suites, compression methods: the size of each one's length field. */
const VECTORS = [1, 2, 1] as const;
const EXTENSIONS_LENGTH_BYTES = 2;
/** RFC 6066 section 3. */
const SERVER_NAME_EXTENSION = 0;
const HOST_NAME = 0;
const MAX_HOST_NAME_BYTES = 255;

/** The parts of a ClientHello that Sluice uses. */
export interface ClientHello {
  /**
   * The server name as the client wrote it: not checked, not in lower case. Undefined if the client
   * names none.
   */
  readonly serverName: string | undefined;
}

const NAMELESS: ClientHello = { serverName: undefined };

/**
 * Reads a connection's ClientHello, however it is split into records and chunks. Anything else, or
 * a malformed one, yields no server name; TLS itself refuses it.
 */
export class ClientHelloReader {
  readonly #message = new ByteCollector();
  readonly #header = new Uint8Array(RECORD_HEADER_BYTES);
  #headerBytes = 0;
  /** Bytes left in the current record. */
  #recordBytesLeft = 0;
  /** The start of the message's next vector, and after the vectors of the next extension. */
  #offset = HANDSHAKE_HEADER_BYTES + FIXED_BYTES;
  #vectorsRead = 0;

  /** Undefined while a server name may still arrive. */
  push(bytes: Uint8Array): ClientHello | undefined {
    const isHandshake = this.#collect(bytes);
    // Early data and ChangeCipherSpec legitimately follow a complete ClientHello at once.
    return this.#read() ?? (isHandshake ? undefined : NAMELESS);
  }

  /** Collects the content of handshake records; false at a record of another kind. */
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
      // The total length of the extensions follows the last vector.
      const isLast = this.#vectorsRead === VECTORS.length - 1;
      this.#offset += lengthBytes + length + (isLast ? EXTENSIONS_LENGTH_BYTES : 0);
    }
    // Each extension starts with type and length, 2 bytes each.
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

/** Reads a list with one name, as every client writes it: the list's length, type, length, name. */
function hostNameIn(list: Uint8Array): string | undefined {
  if (list.byteLength < 5 || list[2] !== HOST_NAME) return undefined;
  const name = list.subarray(5, 5 + readUint16(list, 3));
  if (name.byteLength === 0 || name.byteLength > MAX_HOST_NAME_BYTES) return undefined;
  return String.fromCharCode(...name);
}
