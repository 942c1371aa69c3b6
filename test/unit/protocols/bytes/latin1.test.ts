import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { latin1Text } from "../../../../protocols/bytes/latin1.ts";

describe("latin1Text", () => {
  it("gives each byte the character of its number, however many there are", () => {
    const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => index % 256);
    expect(latin1Text(bytes, 0, bytes.length)).toBe(Buffer.from(bytes).toString("latin1"));
  });

  it("reads from the start to before the end, also around a part's border", () => {
    const bytes = Uint8Array.from({ length: 2100 }, (_, index) => index % 251);
    fc.assert(
      fc.property(fc.nat(2100), fc.constantFrom(0, 1, 1023, 1024, 1025, 2048), (start, length) => {
        const end = Math.min(bytes.length, start + length);
        expect(latin1Text(bytes, start, end)).toBe(Buffer.from(bytes).toString("latin1", start, end));
      }),
    );
  });
});
