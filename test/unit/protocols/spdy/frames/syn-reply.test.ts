import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeSynReply, encodeSynReply } from "../../../../../protocols/spdy/frames/syn-reply.ts";

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
const malformed = (message: string) => expect.objectContaining({ code: "malformed-frame", message });
const ids = fc.integer({ min: 1, max: 0x7fff_ffff });

describe("SYN_REPLY", () => {
  const headers = new Map([["a", "b"]]);

  it("is a stream and a header block, which is put behind it as it is", () => {
    const frame = { type: "SYN_REPLY", streamId: 3, fin: true, headers } as const;
    expect(hexOf(encodeSynReply(frame, bytesOf("aabb")))).toBe("800300020100000600000003aabb");
  });

  it("is read back", () => {
    fc.assert(
      fc.property(ids, fc.boolean(), (streamId, fin) => {
        const frame = { type: "SYN_REPLY", streamId, fin, headers } as const;
        const bytes = encodeSynReply(frame, new Uint8Array(0));
        expect(decodeSynReply(bytes[4] ?? 0, bytes.subarray(8), headers)).toEqual(frame);
      }),
    );
  });

  it("ignores the reserved bit and other flags, and names a stream", () => {
    expect(decodeSynReply(0xfe, bytesOf("80000001"), headers)).toEqual({
      type: "SYN_REPLY",
      streamId: 1,
      fin: false,
      headers,
    });
    expect(() => decodeSynReply(0, bytesOf("80000000"), headers)).toThrow(
      malformed("SYN_REPLY for stream 0"),
    );
  });
});
