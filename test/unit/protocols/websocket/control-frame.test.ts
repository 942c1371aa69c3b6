import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError, type ProtocolErrorCode } from "../../../../protocols/protocol-error.ts";
import {
  closeCodeOf,
  decodeClose,
  encodeClose,
  encodeControlFrame,
  isWireCloseCode,
  NO_CLOSE_CODE,
} from "../../../../protocols/websocket/control-frame.ts";
import { OPCODE } from "../../../../protocols/websocket/frame-header.ts";
import { hexOf, Recorder } from "../../../support/protocols/websocket/recorder.ts";

const KEY = 0x37fa_213d;

describe("control frames", () => {
  it("leave the payload as it was", () => {
    const payload = Uint8Array.of(1, 2, 3);
    expect(hexOf(encodeControlFrame(OPCODE.PONG, payload))).toBe("8a03010203");
    expect(hexOf(encodeControlFrame(OPCODE.PONG, payload, KEY))).toBe("8a8337fa213d36f822");
    expect(payload).toEqual(Uint8Array.of(1, 2, 3));
  });

  it("take 125 bytes and no more", () => {
    expect(encodeControlFrame(OPCODE.PING, new Uint8Array(125), 1).length).toBe(131);
    expect(() => encodeControlFrame(OPCODE.PING, new Uint8Array(126))).toThrow(RangeError);
  });
});

describe("encodeClose", () => {
  it("writes code and reason", () => {
    expect(hexOf(encodeClose(1000, ""))).toBe("880203e8");
    expect(hexOf(encodeClose(1011, "no"))).toBe("880403f36e6f");
  });

  it("echoes a Close without a body", () => {
    expect(hexOf(encodeClose(NO_CLOSE_CODE, "ignored"))).toBe("8800");
    expect(hexOf(encodeClose(NO_CLOSE_CODE, "", KEY))).toBe("888037fa213d");
  });

  it.each([
    0,
    999,
    1004,
    1006,
    1015,
    1016,
    2999,
    5000,
    70000,
    1000.5,
    Number.NaN,
  ])("does not send %s", (code) => {
    expect(() => encodeClose(code, "")).toThrow(RangeError);
  });

  it.each([
    "x".repeat(200),
    "€".repeat(60),
    "😀".repeat(40),
    `x${"😀".repeat(40)}`,
  ])("cuts a long reason between characters", (reason) => {
    for (const maskKey of [undefined, KEY]) {
      const frame = encodeClose(4999, reason, maskKey);
      const recorder = new Recorder(maskKey === undefined ? "client" : "server").push(frame);
      const close = recorder.events[0];
      if (close?.type !== "close") throw new Error("not a close");
      expect(close.code).toBe(4999);
      expect(reason.startsWith(close.reason)).toBe(true);
      expect(Buffer.byteLength(close.reason)).toBeGreaterThan(123 - 4);
    }
  });
});

describe("decodeClose", () => {
  it("reads what encodeClose wrote, and a body that is empty", () => {
    const codes = fc.oneof(fc.constantFrom(1000, 1011, 1014), fc.integer({ min: 3000, max: 4999 }));
    fc.assert(
      fc.property(codes, fc.string({ unit: "grapheme", maxLength: 10 }), (code, reason) => {
        expect(decodeClose(encodeClose(code, reason).subarray(2))).toEqual({ code, reason });
      }),
    );
    expect(decodeClose(new Uint8Array(0))).toEqual({ code: NO_CLOSE_CODE, reason: "" });
    // A byte order mark is a character of the reason.
    expect(decodeClose(Uint8Array.of(3, 0xe8, 0xef, 0xbb, 0xbf)).reason).toBe("\u{feff}");
  });

  it.each([
    [[3, 0xed], "malformed-frame"],
    [[3, 0xee], "malformed-frame"],
    [[0, 0], "malformed-frame"],
    [[0x13, 0x88], "malformed-frame"],
    [[3, 0xe8, 0xc3], "invalid-utf8"],
    [[3, 0xe8, 0xed, 0xa0, 0x80], "invalid-utf8"],
  ])("refuses %j", (payload, code) => {
    expect(() => decodeClose(Uint8Array.from(payload))).toThrow(
      expect.objectContaining({ name: "ProtocolError", code }),
    );
  });
});

describe("close codes", () => {
  it("may be in a frame: 1000 to 1003, 1007 to 1014 and 3000 to 4999", () => {
    const sent = Array.from({ length: 6_000 }, (_, code) => code).filter(isWireCloseCode);
    const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);
    expect(sent).toEqual([...range(1000, 1003), ...range(1007, 1014), ...range(3000, 4999)]);
    for (const code of [1000.5, Number.NaN, -1000, Number.POSITIVE_INFINITY])
      expect(isWireCloseCode(code)).toBe(false);
  });

  it.each<[ProtocolErrorCode, number]>([
    ["invalid-utf8", 1007],
    ["too-many-fragments", 1008],
    ["frame-too-large", 1009],
    ["message-too-large", 1009],
    ["malformed-frame", 1002],
    ["unsupported", 1002],
  ])("a peer that is refused for %s gets %i", (code, closeCode) => {
    expect(closeCodeOf(new ProtocolError(code, ""))).toBe(closeCode);
  });
});
