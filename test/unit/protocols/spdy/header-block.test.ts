import { describe, expect, it } from "vitest";
import type { ProtocolErrorCode } from "../../../../protocols/protocol-error.ts";
import { decodeHeaderBlock, encodeHeaderBlock } from "../../../../protocols/spdy/header-block.ts";
import { defaultSpdyLimits } from "../../../../protocols/spdy/index.ts";

function decode(hex: string, limits = {}) {
  const bytes = Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex"));
  return decodeHeaderBlock(bytes, { ...defaultSpdyLimits, ...limits });
}

const refused: readonly { name: string; block: string; code: ProtocolErrorCode }[] = [
  { name: "nothing", block: "", code: "malformed-header-block" },
  { name: "half a count", block: "0000", code: "malformed-header-block" },
  { name: "a count without headers", block: "00000001", code: "malformed-header-block" },
  {
    name: "a header after the counted ones",
    block: "00000000 00000001 61 00000000",
    code: "malformed-header-block",
  },
  { name: "a name that is cut off", block: "00000001 00000005 61", code: "malformed-header-block" },
  {
    name: "a value that is cut off",
    block: "00000001 00000001 61 00000002 62",
    code: "malformed-header-block",
  },
  { name: "no value", block: "00000001 00000001 61", code: "malformed-header-block" },
  { name: "an empty name", block: "00000001 00000000 00000001 62", code: "malformed-header-block" },
  {
    name: "an upper-case name (UnlowercasedHeaderName)",
    block: "00000001 00000002 6141 00000000",
    code: "malformed-header-block",
  },
  {
    name: "a name twice (DuplicateHeaders)",
    block: "00000002 00000001 61 00000000 00000001 61 00000000",
    code: "malformed-header-block",
  },
  {
    name: "text that is not UTF-8",
    block: "00000001 00000001 61 00000001 ff",
    code: "malformed-header-block",
  },
  { name: "CVE-2026-35469: a count of 2^32 - 1", block: "ffffffff", code: "too-many-headers" },
  {
    name: "TestParseHeaderValueBlockRejectsHeaderFieldSizeOverLimit: a name of 2^32 - 1 bytes",
    block: "00000001 ffffffff 61",
    code: "malformed-header-block",
  },
  {
    name: "a value of 2^32 - 1 bytes",
    block: "00000001 00000001 61 ffffffff",
    code: "malformed-header-block",
  },
];

describe("decodeHeaderBlock", () => {
  for (const { name, block, code } of refused) {
    it(`refuses ${name}`, () => {
      expect(() => decode(block)).toThrow(expect.objectContaining({ name: "ProtocolError", code }));
    });
  }

  it("TestParseHeaderValueBlockRejectsHeaderCountOverLimit: refuses one header more than its limit", () => {
    const block = Buffer.from(
      encodeHeaderBlock(
        new Map([
          ["a", "1"],
          ["b", "2"],
        ]),
      ),
    ).toString("hex");
    expect(() => decode(block, { maxHeaders: 1 })).toThrow(
      expect.objectContaining({ code: "too-many-headers" }),
    );
    expect(decode(block, { maxHeaders: 2 }).size).toBe(2);
  });

  it("TestHeaderParsing: gives back what was encoded, names in lower case, values as they are", () => {
    const headers = new Map([
      ["StreamType", "error"],
      ["accept", "x\0y"],
      ["empty", ""],
      ["naïve", "\u{feff}Wörld 🌍"],
    ]);
    expect(decode(Buffer.from(encodeHeaderBlock(headers)).toString("hex"))).toEqual(
      new Map([...headers].map(([name, value]) => [name.toLowerCase(), value])),
    );
  });
});
