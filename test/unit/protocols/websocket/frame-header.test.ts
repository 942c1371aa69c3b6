import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  isControlOpcode,
  lengthEnd,
  MASK_KEY_BYTES,
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  payloadBytesOf,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "../../../../protocols/websocket/frame-header.ts";
import { hexOf } from "../../../support/protocols/websocket/recorder.ts";

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

describe("a header that is read", () => {
  it("has the length that was written, and ends where it was written to", () => {
    const lengths = fc.oneof(fc.nat(200), fc.nat(70_000), fc.maxSafeNat());
    fc.assert(
      fc.property(lengths, fc.boolean(), (payloadBytes, isMasked) => {
        const header = new Uint8Array(MAX_FRAME_HEADER_BYTES);
        const bytes = isMasked
          ? writeMaskedFrameHeader(header, 0, OPCODE.TEXT, payloadBytes, false, KEY)
          : writeFrameHeader(header, 0, OPCODE.TEXT, payloadBytes, false);
        expect(payloadBytesOf(header)).toBe(payloadBytes);
        expect(lengthEnd(header[1] ?? 0) + (isMasked ? MASK_KEY_BYTES : 0)).toBe(bytes);
      }),
    );
  });

  it.each([
    ["827e0005", 5],
    ["827f0000000000000005", 5],
    ["827f0020000000000000", 2 ** 53],
    ["827f0020000000000001", 2 ** 53],
    ["827fffffffffffffffff", 2 ** 64],
  ])("%s says %d: lengths need not be minimal, and never shrink below 2^53", (hex, payloadBytes) => {
    expect(payloadBytesOf(Uint8Array.from(Buffer.from(hex, "hex")))).toBe(payloadBytes);
  });

  it("is a control frame's from opcode 8 on", () => {
    const controls = Array.from({ length: 16 }, (_, opcode) => opcode).filter(isControlOpcode);
    expect(controls).toEqual([8, 9, 10, 11, 12, 13, 14, 15]);
  });
});
