import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeHeaders,
  decodeRstStream,
  decodeSynReply,
  decodeSynStream,
  decodeWindowUpdate,
  encodeHeaders,
  encodeRstStream,
  encodeSynReply,
  encodeSynStream,
  encodeWindowUpdate,
} from "../../../../../protocols/spdy/frames/stream-frames.ts";

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
const malformed = (message: string) => expect.objectContaining({ code: "malformed-frame", message });
const ids = fc.integer({ min: 1, max: 0x7fff_ffff });

describe("SYN_STREAM", () => {
  const headers = new Map([["streamtype", "stdin"]]);

  it("is two streams, a priority in the upper bits, and a header block", () => {
    const rest = { associatedStreamId: 2, priority: 7, fin: true, unidirectional: true, headers };
    expect(hexOf(encodeSynStream({ type: "SYN_STREAM", streamId: 1, ...rest }, bytesOf("aa")))).toBe(
      "800300010300000b0000000100000002e000aa",
    );
  });

  it("is read back", () => {
    const flag = fc.boolean();
    fc.assert(
      fc.property(
        ids,
        ids,
        fc.nat(7),
        flag,
        flag,
        (streamId, associatedStreamId, priority, fin, unidirectional) => {
          const frame = {
            type: "SYN_STREAM",
            streamId,
            associatedStreamId,
            priority,
            fin,
            unidirectional,
            headers,
          } as const;
          const bytes = encodeSynStream(frame, new Uint8Array(0));
          expect(decodeSynStream(bytes[4] ?? 0, bytes.subarray(8), headers)).toEqual(frame);
        },
      ),
    );
  });

  it("ignores reserved bits and the slot, and names a stream", () => {
    const frame = decodeSynStream(0, bytesOf("80000001800000001fff"), headers);
    expect(frame).toMatchObject({ streamId: 1, associatedStreamId: 0, priority: 0 });
    expect(() => decodeSynStream(0, new Uint8Array(10), headers)).toThrow(
      malformed("SYN_STREAM for stream 0"),
    );
  });
});

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

describe("HEADERS", () => {
  const headers = new Map([["a", "b"]]);

  it("is a stream and a header block, which is put behind it as it is", () => {
    const frame = { type: "HEADERS", streamId: 3, fin: true, headers } as const;
    expect(hexOf(encodeHeaders(frame, bytesOf("aabb")))).toBe("800300080100000600000003aabb");
  });

  it("is read back", () => {
    fc.assert(
      fc.property(ids, fc.boolean(), (streamId, fin) => {
        const frame = { type: "HEADERS", streamId, fin, headers } as const;
        const bytes = encodeHeaders(frame, new Uint8Array(0));
        expect(decodeHeaders(bytes[4] ?? 0, bytes.subarray(8), headers)).toEqual(frame);
      }),
    );
  });

  it("ignores the reserved bit and other flags, and names a stream", () => {
    expect(decodeHeaders(0xfe, bytesOf("80000001"), headers)).toEqual({
      type: "HEADERS",
      streamId: 1,
      fin: false,
      headers,
    });
    expect(() => decodeHeaders(0, bytesOf("80000000"), headers)).toThrow(malformed("HEADERS for stream 0"));
  });
});

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
