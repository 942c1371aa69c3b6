import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HeaderEntry } from "../../../../../protocols/http2/hpack/dynamic-table.ts";
import { HeaderDecoder } from "../../../../../protocols/http2/hpack/header-decoder.ts";
import { encodeHeaderBlock } from "../../../../../protocols/http2/hpack/header-encoder.ts";

const hexOf = (...fields: HeaderEntry[]): string => Buffer.from(encodeHeaderBlock(fields)).toString("hex");

describe("encodeHeaderBlock", () => {
  it.each<[string, HeaderEntry[], string]>([
    ["C.2.4: an indexed field", [[":method", "GET"]], "82"],
    ["C.2.2: a literal with an indexed name", [[":path", "/sample/path"]], "040c2f73616d706c652f70617468"],
    ["a literal with a new name", [["custom-key", "v"]], "000a637573746f6d2d6b65790176"],
    ["the last name of the static table", [["www-authenticate", ""]], "bd"],
    ["an index that fills its prefix", [["accept-charset", "x"]], "0f000178"],
    ["C.1.2: a length past its prefix", [["x", "v".repeat(1_337)]], `0001787fba09${"76".repeat(1_337)}`],
    ["a length that fills its prefix", [["x", "v".repeat(127)]], `0001787f00${"76".repeat(127)}`],
    ["nothing", [], ""],
  ])("%s", (_name, fields, hex) => {
    expect(hexOf(...fields)).toBe(hex);
  });

  it("is read back, whatever is in it, by a decoder that has read others, and adds nothing to its table", () => {
    const text = fc.string({ unit: fc.nat(255).map((code) => String.fromCharCode(code)), maxLength: 300 });
    const known = fc.constantFrom<HeaderEntry>([":method", "POST"], [":path", "/p"], ["te", "trailers"]);
    const fields = fc.array(fc.oneof(fc.tuple(text, text), known), { maxLength: 8 });
    const decoder = new HeaderDecoder();
    fc.assert(
      fc.property(fields, (entries) => {
        expect(decoder.decode(encodeHeaderBlock(entries), 64 * 1024)).toEqual(entries);
      }),
    );
    const long: HeaderEntry = ["x-long", "\u00e9".repeat(40_000)];
    expect(decoder.decode(encodeHeaderBlock([long]), 64 * 1024)).toEqual([long]);
    expect(() => decoder.decode(Uint8Array.of(0xbe), 100)).toThrow("no entry at that index");
  });
});
