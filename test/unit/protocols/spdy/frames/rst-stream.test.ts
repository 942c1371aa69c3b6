import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeRstStream, encodeRstStream } from "../../../../../protocols/spdy/frames/rst-stream.ts";

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
const malformed = (message: string) => expect.objectContaining({ code: "malformed-frame", message });
const ids = fc.integer({ min: 1, max: 0x7fff_ffff });

describe("RST_STREAM", () => {
  it("is a stream and a status (SPDY/3 section 2.6.3), read back", () => {
    expect(hexOf(encodeRstStream({ type: "RST_STREAM", streamId: 7, status: 5 }))).toBe(
      "80030003000000080000000700000005",
    );
    fc.assert(
      fc.property(ids, fc.integer({ min: 1, max: 0xffff_ffff }), (streamId, status) => {
        const frame = { type: "RST_STREAM", streamId, status } as const;
        expect(decodeRstStream(encodeRstStream(frame).subarray(8))).toEqual(frame);
      }),
    );
  });

  it("ignores the reserved bit, and names a stream and a status", () => {
    expect(decodeRstStream(bytesOf("8000000100000001")).streamId).toBe(1);
    expect(() => decodeRstStream(bytesOf("8000000000000001"))).toThrow(malformed("RST_STREAM for stream 0"));
    expect(() => decodeRstStream(bytesOf("0000000100000000"))).toThrow(malformed("RST_STREAM with status 0"));
  });
});
