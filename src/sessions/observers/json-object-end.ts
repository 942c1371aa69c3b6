const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/**
 * Finds the end of a JSON object in bytes that arrive in parts, reading each byte once. Does not
 * validate the JSON.
 */
export class JsonObjectEnd {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** The bytes are not an object. */
  isOther = false;

  /**
   * The index after the object's last brace; undefined if this part does not contain it, or the bytes
   * are not an object.
   */
  endIn(part: Uint8Array): number | undefined {
    for (let at = 0; at < part.length && !this.isOther; at++) {
      if (this.#endsWith(part[at] as number)) return at + 1;
    }
    return undefined;
  }

  #endsWith(byte: number): boolean {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) this.#isInString = false;
      return false;
    }
    if (byte === OPENING_BRACE) this.#depth += 1;
    else if (this.#depth === 0) this.isOther = !SPACES.has(byte);
    else if (byte === QUOTE) this.#isInString = true;
    else if (byte === CLOSING_BRACE) {
      this.#depth -= 1;
      return this.#depth === 0;
    }
    return false;
  }
}
