import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FRAME_TYPE } from "../../../../../protocols/spdy/constants.ts";
import {
  allocateControlFrame,
  encodeTwoWords,
  requireNoFlags,
  requireStreamId,
} from "../../../../../protocols/spdy/frames/control-layout.ts";

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const malformed = (message: string) => expect.objectContaining({ code: "malformed-frame", message });
const ids = fc.integer({ min: 1, max: 0x7fff_ffff });

describe("the layout of control frames", () => {
  it("is version 3, type, flags and the length of a payload of zeros", () => {
    expect(hexOf(allocateControlFrame(FRAME_TYPE.PING, 0x7f, 4))).toBe("800300067f00000400000000");
    const long = allocateControlFrame(FRAME_TYPE.HEADERS, 0, 0x01_0203);
    expect([hexOf(long.subarray(0, 8)), long.length]).toEqual(["8003000800010203", 0x01_0203 + 8]);
    expect(hexOf(encodeTwoWords(FRAME_TYPE.GOAWAY, 1, 0xffff_ffff))).toBe("800300070000000800000001ffffffff");
  });

  it("refuses flags and stream 0 by the frame's name", () => {
    requireNoFlags("PING", 0);
    expect(() => requireNoFlags("PING", 2)).toThrow(malformed("PING with flags 2"));
    expect(() => requireStreamId("HEADERS", 0)).toThrow(malformed("HEADERS for stream 0"));
    fc.assert(fc.property(ids, (id) => requireStreamId("HEADERS", id) === id));
  });
});
