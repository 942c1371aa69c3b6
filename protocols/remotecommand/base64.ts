import { ProtocolError } from "../protocol-error.ts";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const PADDING = 0x3d;
const INVALID = 0xff;
const characters = Uint8Array.from(ALPHABET, (character) => character.charCodeAt(0));
const values = new Uint8Array(256).fill(INVALID);
characters.forEach((character, value) => {
  values[character] = value;
});

/** Standard base64 with padding, as ASCII bytes. */
export function encodeBase64(bytes: Uint8Array): Uint8Array {
  const encoded = new Uint8Array(Math.ceil(bytes.length / 3) * 4).fill(PADDING);
  let at = 0;
  for (let i = 0; i < bytes.length; i += 3) {
    const left = bytes.length - i;
    const group = ((bytes[i] ?? 0) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    encoded[at] = characters[group >> 18] ?? 0;
    encoded[at + 1] = characters[(group >> 12) & 0x3f] ?? 0;
    if (left > 1) encoded[at + 2] = characters[(group >> 6) & 0x3f] ?? 0;
    if (left > 2) encoded[at + 3] = characters[group & 0x3f] ?? 0;
    at += 4;
  }
  return encoded;
}

/** Decodes one message's base64 as it arrives, cut anywhere. Line breaks are skipped, as Go's decoder does. */
export class Base64Decoder {
  #group = 0;
  #groupLength = 0;
  #paddings = 0;

  /** Throws ProtocolError for an invalid character, and for incomplete padding in the last part. */
  push(part: Uint8Array, isLast: boolean): Uint8Array {
    const decoded = new Uint8Array(Math.ceil((part.length + this.#groupLength) / 4) * 3);
    let at = 0;
    for (const character of part) {
      if (character === 0x0d || character === 0x0a) continue;
      this.#take(character);
      if (this.#groupLength < 4) continue;
      decoded[at++] = this.#group >> 16;
      if (this.#paddings < 2) decoded[at++] = (this.#group >> 8) & 0xff;
      if (this.#paddings < 1) decoded[at++] = this.#group & 0xff;
      this.#group = 0;
      this.#groupLength = 0;
    }
    if (isLast && this.#groupLength > 0)
      throw new ProtocolError("malformed-message", "base64 ends within a group");
    return decoded.subarray(0, at);
  }

  #take(character: number): void {
    if (character === PADDING && this.#groupLength >= 2) {
      this.#paddings += 1;
      this.#group <<= 6;
    } else {
      const value = values[character] ?? INVALID;
      if (value === INVALID || this.#paddings > 0) {
        throw new ProtocolError("malformed-message", "a character that is not base64");
      }
      this.#group = (this.#group << 6) | value;
    }
    this.#groupLength += 1;
  }
}
