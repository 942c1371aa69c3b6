import { describe, expect, it } from "vitest";
import { carveDataHeader, FrameEncoder, writeDataHeader } from "../../../../protocols/spdy/frame-encoder.ts";

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

describe("FrameEncoder", () => {
  it("writes DATA headers into memory that is there", () => {
    const target = new Uint8Array(10).fill(0xee);
    writeDataHeader(target, 1, 0x7fff_ffff, 0xff_ffff, true);
    expect(hexOf(target)).toBe("ee7fffffff01ffffffee");
    writeDataHeader(target, 1, 1, 0, false);
    expect(hexOf(target)).toBe("ee0000000100000000ee");
  });

  it("begins the first header block alone with zlib's header", () => {
    const encoder = new FrameEncoder();
    const reply = { type: "SYN_REPLY", streamId: 1, fin: false, headers: new Map() } as const;
    const blocks = [encoder.encode(reply), encoder.encode(reply)].map((frame) => hexOf(frame.subarray(12)));
    expect(blocks[0]?.startsWith("78f9e3c6a7c2")).toBe(true);
    expect(blocks[0]?.slice(12)).toBe(blocks[1]);
  });
});

it("DATA headers are right, and keep what they say while thousands follow", () => {
  const headers = Array.from({ length: 2_000 }, (_, index) =>
    carveDataHeader(index + 1, index * 100, index % 2 === 0),
  );
  for (const [index, header] of headers.entries()) {
    const expected = Buffer.alloc(8);
    expected.writeUInt32BE(index + 1, 0);
    expected.writeUInt32BE(index * 100, 4);
    expected.writeUInt8(index % 2 === 0 ? 1 : 0, 4);
    expect(Buffer.from(header)).toEqual(expected);
  }
});
