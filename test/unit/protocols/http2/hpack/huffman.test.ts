import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeHuffman } from "../../../../../protocols/http2/hpack/huffman.ts";

const decode = (hex: string): string | undefined => {
  const bytes = Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex"));
  return decodeHuffman(bytes, 0, bytes.length);
};

/** Codes of RFC 7541 appendix B, at least one of each length. */
const CODES: Readonly<Record<string, string>> = {
  "0": "00000",
  a: "00011",
  t: "01001",
  " ": "010100",
  "%": "010101",
  r: "101100",
  ":": "1011100",
  z: "1111011",
  "&": "11111000",
  Z: "11111101",
  "!": "1111111000",
  "'": "11111111010",
  "#": "111111111010",
  "\0": "1111111111000",
  "~": "1111111111101",
  "^": "11111111111100",
  "<": "111111111111100",
  "\\": "1111111111111110000",
  "\u0080": "11111111111111100110",
  "\u0099": "111111111111111011100",
  "\u0081": "1111111111111111010010",
  "\u0001": "11111111111111111011000",
  "\t": "111111111111111111101010",
  "\u00c7": "1111111111111111111101100",
  "\u00c0": "11111111111111111111100000",
  "\u00cb": "111111111111111111111011110",
  "\u0002": "1111111111111111111111100010",
  "\n": "111111111111111111111111111100",
  "\r": "111111111111111111111111111101",
};

const coded = (text: string): Uint8Array => {
  const bits = Array.from(text, (character) => CODES[character]).join("");
  const padded = bits.padEnd(Math.ceil(bits.length / 8) * 8, "1");
  return Uint8Array.from(padded.match(/.{8}/g) ?? [], (octet) => Number.parseInt(octet, 2));
};

describe("a Huffman-coded text", () => {
  it.each([
    ["www.example.com", "f1e3 c2e5 f23a 6ba0 ab90 f4ff"],
    ["no-cache", "a8eb 1064 9cbf"],
    ["custom-value", "25a8 49e9 5bb8 e8b4 bf"],
    ["302", "6402"],
    ["Mon, 21 Oct 2013 20:13:21 GMT", "d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff"],
    ["https://www.example.com", "9d29 ad17 1863 c78f 0b97 c8e9 ae82 ae43 d3"],
    [
      "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
      "94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ],
    ["", ""],
  ])("%j of RFC 7541 appendix C", (text, hex) => {
    expect(decode(hex)).toBe(text);
  });

  it("is read back, from codes of every length, between other bytes", () => {
    const texts = fc.string({ unit: fc.constantFrom(...Object.keys(CODES)), maxLength: 60 });
    fc.assert(
      fc.property(texts, fc.uint8Array({ maxLength: 3 }), (text, around) => {
        const bytes = coded(text);
        const whole = Uint8Array.of(...around, ...bytes, ...around);
        expect(decodeHuffman(whole, around.length, around.length + bytes.length)).toBe(text);
      }),
    );
  });

  it("may be longer than the shared memory, and two do not change each other", () => {
    const long = decodeHuffman(coded("a".repeat(8_000)), 0, 5_000);
    const short = decodeHuffman(coded("000"), 0, 2);
    expect([long, short]).toEqual(["a".repeat(8_000), "000"]);
  });

  it.each([
    ["an end of string inside", "ffffffff"],
    ["an end of string behind a character", "1fffffffff"],
    ["padding of a whole byte", "07ff"],
    ["padding of a whole byte alone", "ff"],
    ["padding of zeros", "00"],
    ["padding that ends with a zero", "1e"],
  ])("is refused for %s", (_name, hex) => {
    expect(decode(hex)).toBeUndefined();
  });

  it("may end with up to seven ones", () => {
    expect(decode("1f")).toBe("a");
    // `&` is one byte; `a&:` leaves four bits.
    for (const text of ["&", "a", "a:", "aa", "aaa", "a a"])
      expect(decodeHuffman(coded(text), 0, coded(text).length)).toBe(text);
  });
});
