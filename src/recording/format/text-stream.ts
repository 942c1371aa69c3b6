import { isUtf8 } from "node:buffer";

export interface DecodedPart {
  /** May be a view of the part that was pushed. */
  readonly bytes: Buffer;
  /** False if the bytes are not valid UTF-8. */
  readonly isText: boolean;
}

/** Decodes a stream of UTF-8 that is cut anywhere: an incomplete character waits for its remaining bytes. */
export class TextStream {
  #held: Buffer = Buffer.alloc(0);

  /** Undefined if the part has only the beginning of a character. Keeps no view of `part`. */
  push(part: Uint8Array): DecodedPart | undefined {
    const bytes = this.#held.byteLength === 0 ? asBuffer(part) : Buffer.concat([this.#held, part]);
    const whole = bytes.subarray(0, bytes.byteLength - incompleteTail(bytes));
    this.#held = Buffer.from(bytes.subarray(whole.byteLength));
    return whole.byteLength === 0 ? undefined : decoded(whole);
  }

  /** Returns the beginning of a character whose remaining bytes never arrived. */
  flush(): DecodedPart | undefined {
    const rest = this.#held;
    this.#held = Buffer.alloc(0);
    return rest.byteLength === 0 ? undefined : decoded(rest);
  }
}

function decoded(bytes: Buffer): DecodedPart {
  return { bytes, isText: isUtf8(bytes) };
}

function asBuffer(part: Uint8Array): Buffer {
  return Buffer.from(part.buffer, part.byteOffset, part.byteLength);
}

/** The number of bytes at the end that begin an incomplete character, 0 to 3. */
function incompleteTail(bytes: Uint8Array): number {
  const length = bytes.byteLength;
  for (let back = 1; back <= Math.min(3, length); back++) {
    const byte = bytes[length - back] as number;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return byte < 0xf8 && needed > back ? back : 0;
  }
  return 0;
}
