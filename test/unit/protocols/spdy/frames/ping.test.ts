import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodePing, encodePing } from "../../../../../protocols/spdy/frames/ping.ts";

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
const malformed = (message: string) => expect.objectContaining({ code: "malformed-frame", message });

describe("PING", () => {
  it("is an id of 32 bits (SPDY/3 section 2.6.5), read back", () => {
    expect(hexOf(encodePing({ type: "PING", id: 1 }))).toBe("800300060000000400000001");
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 0xffff_ffff }), (id) => {
        expect(decodePing(0, encodePing({ type: "PING", id }).subarray(8))).toEqual({ type: "PING", id });
      }),
    );
  });

  it("has no flags, and no id 0", () => {
    expect(() => decodePing(1, bytesOf("00000001"))).toThrow(malformed("PING with flags 1"));
    expect(() => decodePing(0, bytesOf("00000000"))).toThrow(malformed("PING with id 0"));
  });
});
