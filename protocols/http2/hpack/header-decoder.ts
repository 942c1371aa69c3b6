import { latin1Text } from "../../bytes/index.ts";
import { ERROR_CODE, Http2Error } from "../http2-error.ts";
import { bytesOf, DynamicTable, type HeaderEntry, STATIC_TABLE } from "./dynamic-table.ts";
import { decodeHuffman } from "./huffman.ts";

/** The initial size, and the largest that a peer's encoder may use, because we announce no other. */
const TABLE_BYTES = 4_096;

/**
 * Decodes a connection's header blocks in order of arrival (RFC 7541). Strings are latin1: one
 * character a byte.
 */
export class HeaderDecoder {
  readonly #table = new DynamicTable(TABLE_BYTES);
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;

  /**
   * The fields of a whole block. Throws Http2Error: COMPRESSION_ERROR, or "header-list-too-large"
   * if they exceed `maxListBytes`.
   */
  decode(block: Uint8Array, maxListBytes: number): HeaderEntry[] {
    this.#bytes = block;
    this.#at = 0;
    const fields: HeaderEntry[] = [];
    let listBytes = 0;
    while (this.#at < block.length) {
      const field = this.#next(fields.length === 0);
      if (field === undefined) continue;
      listBytes += bytesOf(field);
      if (listBytes > maxListBytes) {
        throw new Http2Error("header-list-too-large", ERROR_CODE.ENHANCE_YOUR_CALM, "header list too large");
      }
      fields.push(field);
    }
    return fields;
  }

  /** Undefined for a table size update, which is not a field. */
  #next(isFirst: boolean): HeaderEntry | undefined {
    const byte = this.#bytes[this.#at] as number;
    if (byte >= 0x80) return this.#entryAt(this.#integer(7));
    if (byte >= 0x40) {
      const field = this.#literal(6);
      this.#table.add(field);
      return field;
    }
    if (byte < 0x20) return this.#literal(4);
    const tableBytes = this.#integer(5);
    if (!isFirst || tableBytes > TABLE_BYTES) throw malformed("bad size of the dynamic table");
    this.#table.resize(tableBytes);
    return undefined;
  }

  #literal(prefixBits: number): HeaderEntry {
    const index = this.#integer(prefixBits);
    const name = index === 0 ? this.#string() : this.#entryAt(index)[0];
    return [name, this.#string()];
  }

  #entryAt(index: number): HeaderEntry {
    const entry = STATIC_TABLE[index - 1] ?? this.#table.get(index - 1 - STATIC_TABLE.length);
    if (entry === undefined) throw malformed("no entry at that index");
    return entry;
  }

  /** RFC 7541 section 5.1. */
  #integer(prefixBits: number): number {
    const mask = (1 << prefixBits) - 1;
    const prefix = this.#byte() & mask;
    if (prefix < mask) return prefix;
    let value = prefix;
    // Four more bytes give 2^28, more than any valid index or length.
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte();
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw malformed("an integer that is too large");
  }

  #string(): string {
    const isCoded = (this.#bytes[this.#at] ?? 0) >= 0x80;
    const length = this.#integer(7);
    const start = this.#at;
    const end = start + length;
    if (end > this.#bytes.length) throw malformed("a string that is longer than its block");
    this.#at = end;
    if (!isCoded) return latin1Text(this.#bytes, start, end);
    const text = decodeHuffman(this.#bytes, start, end);
    if (text === undefined) throw malformed("a Huffman code that is none");
    return text;
  }

  #byte(): number {
    const byte = this.#bytes[this.#at];
    if (byte === undefined) throw malformed("a field that is not whole");
    this.#at++;
    return byte;
  }
}

function malformed(message: string): Http2Error {
  return new Http2Error("connection", ERROR_CODE.COMPRESSION_ERROR, message);
}
