import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { HEADER_DICTIONARY } from "../../../../protocols/spdy/header-compression.ts";

// The bound under test.
const HEADER_DICTIONARY_ID = 0xe3c6_a7c2;

describe("the preset dictionary of SPDY/3", () => {
  it("is the draft's, byte for byte", () => {
    expect(HEADER_DICTIONARY).toHaveLength(1423);
    expect(createHash("sha256").update(HEADER_DICTIONARY).digest("hex")).toMatch(/^51d27341.*407f02$/);
  });

  it("has the Adler-32 that the zlib header names", () => {
    let a = 1;
    let b = 0;
    for (const byte of HEADER_DICTIONARY) {
      a = (a + byte) % 65521;
      b = (b + a) % 65521;
    }
    expect(b * 0x1_0000 + a).toBe(HEADER_DICTIONARY_ID);
  });
});
