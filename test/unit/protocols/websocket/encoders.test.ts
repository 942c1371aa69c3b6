import { describe, expect, it } from "vitest";
import {
  encodeClose,
  encodeControlFrame,
  MAX_FRAME_HEADER_BYTES,
  NO_CLOSE_CODE,
  OPCODE,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "../../../../protocols/websocket/index.ts";
import { hexOf, Recorder } from "../../../support/protocols/websocket/recorder.ts";

const KEY = 0x37fa_213d;

const headers = [
  { payloadBytes: 0, unmasked: "8200", masked: "828037fa213d" },
  { payloadBytes: 125, unmasked: "827d", masked: "82fd37fa213d" },
  { payloadBytes: 126, unmasked: "827e007e", masked: "82fe007e37fa213d" },
  { payloadBytes: 65535, unmasked: "827effff", masked: "82feffff37fa213d" },
  { payloadBytes: 65536, unmasked: "827f0000000000010000", masked: "82ff000000000001000037fa213d" },
  { payloadBytes: 2 ** 32 + 1, unmasked: "827f0000000100000001", masked: "82ff000000010000000137fa213d" },
  { payloadBytes: 2 ** 53 - 1, unmasked: "827f001fffffffffffff", masked: "82ff001fffffffffffff37fa213d" },
];

describe("frame headers", () => {
  it.each(headers)("are minimal for $payloadBytes bytes", ({ payloadBytes, unmasked, masked }) => {
    const target = new Uint8Array(MAX_FRAME_HEADER_BYTES + 6).fill(0xee);
    const bytes = writeFrameHeader(target, 3, OPCODE.BINARY, payloadBytes, true);
    expect(hexOf(target.subarray(0, 3 + bytes + 1))).toBe(`eeeeee${unmasked}ee`);

    target.fill(0xee);
    const maskedBytes = writeMaskedFrameHeader(target, 3, OPCODE.BINARY, payloadBytes, true, KEY);
    expect(hexOf(target.subarray(0, 3 + maskedBytes + 1))).toBe(`eeeeee${masked}ee`);
  });

  it("carry opcode and FIN", () => {
    const target = new Uint8Array(2);
    writeFrameHeader(target, 0, OPCODE.TEXT, 1, false);
    expect(hexOf(target)).toBe("0101");
    writeFrameHeader(target, 0, OPCODE.CONTINUATION, 0, true);
    expect(hexOf(target)).toBe("8000");
  });
});

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
