import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeGoAway, encodeGoAway } from "../../../../../protocols/spdy/frames/go-away.ts";

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
const malformed = (message: string) => expect.objectContaining({ code: "malformed-frame", message });
const ids = fc.integer({ min: 1, max: 0x7fff_ffff });

describe("GOAWAY", () => {
  it("is the last good stream and a status (SPDY/3 section 2.6.6), read back", () => {
    expect(hexOf(encodeGoAway({ type: "GOAWAY", lastGoodStreamId: 5, status: 2 }))).toBe(
      "80030007000000080000000500000002",
    );
    fc.assert(
      fc.property(ids, fc.nat(0xffff_ffff), (lastGoodStreamId, status) => {
        const frame = { type: "GOAWAY", lastGoodStreamId, status } as const;
        expect(decodeGoAway(0, encodeGoAway(frame).subarray(8))).toEqual(frame);
      }),
    );
  });

  it("ignores the reserved bit, and has no flags", () => {
    expect(decodeGoAway(0, bytesOf("ffffffff00000000")).lastGoodStreamId).toBe(0x7fff_ffff);
    expect(() => decodeGoAway(4, new Uint8Array(8))).toThrow(malformed("GOAWAY with flags 4"));
  });
});
