import { describe, expect, it } from "vitest";
import type { HeaderEntry } from "../../../../../protocols/http2/hpack/dynamic-table.ts";
import { HeaderDecoder } from "../../../../../protocols/http2/hpack/header-decoder.ts";
import { encodeHeaderBlock } from "../../../../../protocols/http2/hpack/header-encoder.ts";

const MAX_BYTES = 64 * 1024;

function bytes(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex"));
}

function decode(...blocks: string[]): HeaderEntry[][] {
  const decoder = new HeaderDecoder();
  return blocks.map((block) => decoder.decode(bytes(block), MAX_BYTES));
}

/** What `decode` throws. */
function refusal(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe("RFC 7541 appendix C", () => {
  it("C.2: fields of each representation", () => {
    expect(decode("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572")).toEqual([
      [["custom-key", "custom-header"]],
    ]);
    expect(decode("040c 2f73 616d 706c 652f 7061 7468")).toEqual([[[":path", "/sample/path"]]]);
    expect(decode("1008 7061 7373 776f 7264 0673 6563 7265 74")).toEqual([[["password", "secret"]]]);
    expect(decode("82")).toEqual([[[":method", "GET"]]]);
  });

  it("C.4: requests with Huffman codes and a table that grows", () => {
    const [first, second, third] = decode(
      "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
      "8286 84be 5886 a8eb 1064 9cbf",
      "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    );
    const authority = [":authority", "www.example.com"];
    expect(first).toEqual([[":method", "GET"], [":scheme", "http"], [":path", "/"], authority]);
    expect(second?.slice(3)).toEqual([authority, ["cache-control", "no-cache"]]);
    expect(third).toEqual([
      [":method", "GET"],
      [":scheme", "https"],
      [":path", "/index.html"],
      authority,
      ["custom-key", "custom-value"],
    ]);
  });

  it("C.6: responses out of a table of 256 bytes, whose oldest entries go", () => {
    const date = ["date", "Mon, 21 Oct 2013 20:13:21 GMT"];
    const location = ["location", "https://www.example.com"];
    const privately = ["cache-control", "private"];
    const blocks = decode(
      // A new size of the table first: the example presumes 256.
      "3fe1 01 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
      "4883 640e ffc1 c0bf",
      "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    );
    expect(blocks[0]).toEqual([[":status", "302"], privately, date, location]);
    expect(blocks[1]).toEqual([[":status", "307"], privately, date, location]);
    expect(blocks[2]).toEqual([
      [":status", "200"],
      privately,
      ["date", "Mon, 21 Oct 2013 20:13:22 GMT"],
      location,
      ["content-encoding", "gzip"],
      ["set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"],
    ]);
  });
});

describe("blocks that no encoder makes", () => {
  it.each([
    ["an index of nothing", "80"],
    ["an index behind the table", "be"],
    ["an integer without an end", "ffffffffffffff"],
    ["an integer that is cut off", "ff"],
    ["a string longer than its block", "00 05 61"],
    ["a string of gigabytes", "00 7fffffff07"],
    ["a field without a value", "00 01 61"],
    ["a table larger than allowed", "3fe2 1f"],
    ["a table resized behind a field", "82 20"],
    ["a Huffman code that is none", "00 81 00 00"],
  ])("%s", (_, block) => {
    expect(refusal(() => decode(block))).toMatchObject({ name: "Http2Error", fault: "connection", code: 9 });
  });

  it("a small block that becomes a large list", () => {
    const decoder = new HeaderDecoder();
    const large: HeaderEntry = ["x", "v".repeat(3_000)];
    // Indexed: it is one byte from then on.
    const block = [...encodeHeaderBlock([large])];
    block[0] = 0x40;
    const bomb = Uint8Array.from([...block, ...new Array(100).fill(0xbe)]);
    expect(refusal(() => decoder.decode(bomb, MAX_BYTES))).toMatchObject({ fault: "header-list-too-large" });
  });
});

describe("a list", () => {
  it("may have as many bytes as allowed, 32 more for each field, and not one more", () => {
    const block = bytes("8286 0001 6101 62");
    expect(new HeaderDecoder().decode(block, 42 + 43 + 34)).toHaveLength(3);
    const large = refusal(() => new HeaderDecoder().decode(block, 42 + 43 + 33));
    expect(large).toMatchObject({ fault: "header-list-too-large", code: 11 });
  });

  it("may begin with any number that is allowed for the table's size, and forgets entries by it", () => {
    const [first] = decode("2020 3fe1 1f82");
    expect(first).toEqual([[":method", "GET"]]);
    expect(refusal(() => decode("4001 6101 62", "20be"))).toMatchObject({ code: 9 });
    expect(decode("4001 6101 62", "be")[1]).toEqual([["a", "b"]]);
  });
});

describe("texts longer than a part of the memory they are decoded into", () => {
  it("Huffman-coded and plain ones come whole, and one does not change another", () => {
    // `a` is 00011: eight of them are five bytes.
    const coded = (eights: number) => "18c6318c63".repeat(eights);
    const length = (bytes: number) => Buffer.from([0x7f, ...varint(bytes - 0x7f)]);
    const varint = (rest: number): number[] =>
      rest < 0x80 ? [rest] : [(rest & 0x7f) | 0x80, ...varint(rest >> 7)];
    const huffman = Buffer.concat([length(5 * 800), Buffer.from(coded(800), "hex")]);
    huffman[0] = 0xff;
    const plain = Buffer.concat([length(3_000), Buffer.alloc(3_000, 0xe4)]);
    const field = (value: Buffer) => Buffer.concat([Buffer.from([0x00, 0x01, 0x78]), value]);
    const block = Buffer.concat([field(huffman), field(plain), field(Buffer.from("8518c6318c63", "hex"))]);
    expect(new HeaderDecoder().decode(block, MAX_BYTES)).toEqual([
      ["x", "a".repeat(6_400)],
      ["x", "\u00e4".repeat(3_000)],
      ["x", "a".repeat(8)],
    ]);
  });
});
