import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultSpdyLimits } from "../../../../../protocols/spdy/constants.ts";
import {
  decodeGoAway,
  decodePing,
  decodeSettings,
  encodeGoAway,
  encodePing,
  encodeSettings,
} from "../../../../../protocols/spdy/frames/session-frames.ts";

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
const malformed = (message: string) => expect.objectContaining({ code: "malformed-frame", message });

const limits = { ...defaultSpdyLimits, maxSettingsEntries: 3 };
const entry = fc.record({ flags: fc.nat(255), id: fc.nat(0xff_ffff), value: fc.nat(0xffff_ffff) });

describe("SETTINGS", () => {
  it("is a count and entries (SPDY/3 section 2.6.4), read back", () => {
    const one = { type: "SETTINGS", entries: [{ flags: 1, id: 4, value: 100 }] } as const;
    expect(hexOf(encodeSettings(one))).toBe("800300040000000c000000010100000400000064");
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 3 }), (entries) => {
        const frame = { type: "SETTINGS", entries } as const;
        expect(decodeSettings(encodeSettings(frame).subarray(8), limits)).toEqual(frame);
      }),
    );
  });

  it("may have as many entries as allowed, by its count alone", () => {
    const three = { type: "SETTINGS", entries: Array(3).fill({ flags: 0, id: 1, value: 1 }) } as const;
    expect(decodeSettings(encodeSettings(three).subarray(8), limits).entries).toHaveLength(3);
    expect(() => decodeSettings(bytesOf("00000004"), limits)).toThrow(
      expect.objectContaining({ code: "too-many-settings", message: "SETTINGS with 4 entries" }),
    );
    expect(() => decodeSettings(bytesOf("ffffffff"), limits)).toThrow("SETTINGS with 4294967295 entries");
  });

  it("has the length that its count says", () => {
    const whole = encodeSettings({ type: "SETTINGS", entries: [{ flags: 0, id: 1, value: 1 }] }).slice(8);
    for (let length = 4; length < whole.length; length += 1) {
      expect(() => decodeSettings(whole.slice(0, length), limits)).toThrow(
        malformed(`SETTINGS with 1 entries in ${length} bytes`),
      );
    }
    expect(() => decodeSettings(bytesOf("0000000000"), limits)).toThrow("in 5 bytes");
  });
});

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
