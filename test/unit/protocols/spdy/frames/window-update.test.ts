import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeWindowUpdate,
  encodeWindowUpdate,
} from "../../../../../protocols/spdy/frames/window-update.ts";

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
const malformed = (message: string) => expect.objectContaining({ code: "malformed-frame", message });
const ids = fc.integer({ min: 1, max: 0x7fff_ffff });

describe("WINDOW_UPDATE", () => {
  it("is a stream, or 0 for the session, and bytes (SPDY/3.1 section 2.6.8), read back", () => {
    const session = { type: "WINDOW_UPDATE", streamId: 0, deltaBytes: 0x1_0000 } as const;
    expect(hexOf(encodeWindowUpdate(session))).toBe("80030009000000080000000000010000");
    fc.assert(
      fc.property(fc.oneof(ids, fc.constant(0)), ids, (streamId, deltaBytes) => {
        const frame = { type: "WINDOW_UPDATE", streamId, deltaBytes } as const;
        expect(decodeWindowUpdate(0, encodeWindowUpdate(frame).subarray(8))).toEqual(frame);
      }),
    );
  });

  it("ignores reserved bits, and has no flags", () => {
    const frame = decodeWindowUpdate(0, bytesOf("80000003ffffffff"));
    expect(frame).toEqual({ type: "WINDOW_UPDATE", streamId: 3, deltaBytes: 0x7fff_ffff });
    expect(() => decodeWindowUpdate(1, new Uint8Array(8))).toThrow(malformed("WINDOW_UPDATE with flags 1"));
  });
});
