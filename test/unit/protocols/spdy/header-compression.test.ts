import { deflateRawSync, deflateSync, constants as zlib } from "node:zlib";
import { describe, expect, it } from "vitest";
import {
  decodeHeaderBlock,
  encodeHeaderBlock,
  type SpdyHeaders,
} from "../../../../protocols/spdy/header-block.ts";
import {
  HEADER_DICTIONARY,
  HeaderCompressor,
  HeaderDecompressor,
} from "../../../../protocols/spdy/header-compression.ts";
import { defaultSpdyLimits } from "../../../../protocols/spdy/index.ts";
import { naiveDeflater, naiveHeaders, naiveInflater } from "../../../support/naive-spdy.ts";

const sync = zlib.Z_SYNC_FLUSH;
const roomy = { ...defaultSpdyLimits, maxHeaderBlockBytes: 1024 * 1024 };

/** A connection's life of header sets: repeated names, long and odd values, more than the window of 32 KiB in all. */
function story(length: number): SpdyHeaders[] {
  return Array.from({ length }, (_, index) => {
    const headers = new Map([
      ["streamtype", ["error", "stdin", "stdout"][index % 3] as string],
      ["requestid", String(index >> 1)],
    ]);
    if (index % 7 === 0) headers.set("x-long", `${index}-`.repeat(index));
    if (index % 11 === 0)
      headers.set(
        "x-unlike",
        [...Array(200).keys()].map((at) => (index * 7919 + at ** 3).toString(36)).join(""),
      );
    if (index % 13 === 0) headers.clear();
    return headers;
  });
}

function firstBlock(plain: Uint8Array): Buffer {
  return deflateSync(plain, { level: 9, dictionary: HEADER_DICTIONARY, finishFlush: sync });
}

describe("HeaderDecompressor", () => {
  it("TestCompressionContextAcrossFrames: follows one zlib stream over 600 blocks", async () => {
    const deflate = naiveDeflater();
    const decompressor = new HeaderDecompressor(roomy.maxHeaderBlockBytes);
    for (const headers of story(600)) {
      const block = await deflate(encodeHeaderBlock(headers));
      expect(decodeHeaderBlock(decompressor.decompress(block), roomy)).toEqual(headers);
    }
  });

  it("follows blocks that are larger than the window", async () => {
    const deflate = naiveDeflater();
    const decompressor = new HeaderDecompressor(roomy.maxHeaderBlockBytes);
    for (const bytes of [40_000, 10, 32_768, 32_767, 70_000, 1]) {
      const headers = new Map([["v", [...Array(bytes).keys()].map((at) => (at * at) % 10).join("")]]);
      expect(
        decodeHeaderBlock(decompressor.decompress(await deflate(encodeHeaderBlock(headers))), roomy),
      ).toEqual(headers);
    }
  });

  it("takes any block up to its limit and none beyond", () => {
    const plain = encodeHeaderBlock(new Map([["a", "b".repeat(5000)]]));
    expect(new HeaderDecompressor(plain.length).decompress(firstBlock(plain))).toHaveLength(plain.length);
    expect(() => new HeaderDecompressor(plain.length - 1).decompress(firstBlock(plain))).toThrow(
      expect.objectContaining({ code: "header-block-too-large" }),
    );
  });

  it("refuses a bomb without inflating it: 60 KiB that say 60 MiB", () => {
    const bomb = firstBlock(new Uint8Array(60 * 1024 * 1024));
    expect(bomb.length).toBeLessThan(64 * 1024);
    const before = process.memoryUsage().arrayBuffers;
    expect(() => new HeaderDecompressor(64 * 1024).decompress(bomb)).toThrow(
      expect.objectContaining({ code: "header-block-too-large" }),
    );
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 1024 * 1024);
  });

  const plain = encodeHeaderBlock(new Map([["streamtype", "error"]]));
  const good = firstBlock(plain);
  const patched = (at: number, ...bytes: number[]) => {
    const block = Uint8Array.from(good);
    block.set(bytes, at);
    return block;
  };
  const refused: readonly [string, Uint8Array][] = [
    ["nothing", new Uint8Array(0)],
    ["less than a zlib header", good.subarray(0, 5)],
    ["TestReadMalformedZlibHeader: another method", patched(0, 0x77)],
    ["TestReadMalformedZlibHeader: a bad check", patched(1, 0xfa)],
    ["TestReadMalformedZlibHeader: zeros", patched(0, 0, 0)],
    ["no dictionary", deflateSync(plain, { finishFlush: sync })],
    ["another dictionary", deflateSync(plain, { dictionary: Buffer.from("other"), finishFlush: sync })],
    ["raw deflate", deflateRawSync(plain, { finishFlush: sync })],
    ["a block that is cut off", good.subarray(0, good.length - 1)],
    ["an ended stream", deflateSync(plain, { dictionary: HEADER_DICTIONARY })],
    [
      "WrongCompressedPayloadSize: bytes after the stream's end",
      Buffer.concat([good.subarray(0, good.length - 5), Buffer.from("010000ffff0000ffff", "hex")]),
    ],
    ["bits that no Huffman code has", patched(6, 0xff, 0xff, 0xff)],
  ];
  for (const [name, block] of refused) {
    it(`refuses ${name}`, () => {
      expect(() => new HeaderDecompressor(1000).decompress(block)).toThrow(
        expect.objectContaining({ name: "ProtocolError", code: "malformed-header-block" }),
      );
    });
  }
});

describe("HeaderCompressor", () => {
  it("is read by one zlib stream over 600 blocks", async () => {
    const inflate = naiveInflater();
    const compressor = new HeaderCompressor();
    for (const headers of story(600)) {
      const block =
        headers.size === 0 ? compressor.compressEmpty() : compressor.compress(encodeHeaderBlock(headers));
      expect(naiveHeaders(await inflate(block))).toEqual(headers);
    }
  });

  it("stores blocks larger than deflate's 64 KiB in pieces", async () => {
    const inflate = naiveInflater();
    const compressor = new HeaderCompressor();
    const decompressor = new HeaderDecompressor(roomy.maxHeaderBlockBytes);
    for (const bytes of [65_521, 65_522, 65_535, 200_000]) {
      const headers = new Map([["v", "x".repeat(bytes)]]);
      const block = compressor.compress(encodeHeaderBlock(headers));
      expect(naiveHeaders(await inflate(block))).toEqual(headers);
      expect(decodeHeaderBlock(decompressor.decompress(block), roomy)).toEqual(headers);
    }
  });
});
