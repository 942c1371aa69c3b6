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
import { applyMask } from "../../../../protocols/websocket/index.ts";
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

/** RFC 6455 section 5.3, literally. */
function maskedLiterally(bytes: Uint8Array, maskKey: number, phase: number): Uint8Array {
  const key = new DataView(new ArrayBuffer(4));
  key.setUint32(0, maskKey);
  return bytes.map((byte, at) => byte ^ key.getUint8((at + phase) % 4));
}

const maskKeys = fc.oneof(fc.integer({ min: 0, max: 0xffff_ffff }), fc.constantFrom(0, 0x8000_0000, 0xff));

describe("applyMask", () => {
  it("agrees with the definition for every alignment, phase and length up to 130", () => {
    const memory = Uint8Array.from({ length: 140 }, (_, at) => at * 7);
    for (let shift = 0; shift < 4; shift++) {
      for (let phase = 0; phase < 4; phase++) {
        for (let length = 0; length <= 130; length++) {
          const copy = memory.slice();
          const bytes = copy.subarray(shift, shift + length);
          const expected = maskedLiterally(bytes, 0x37fa_213d, phase);
          expect(applyMask(bytes, 0x37fa_213d, phase)).toBe((phase + length) % 4);
          expect(Buffer.compare(bytes, expected), `${shift}, ${phase}, ${length}`).toBe(0);
          expect(Buffer.compare(copy.subarray(shift + length), memory.subarray(shift + length))).toBe(0);
          expect(Buffer.compare(copy.subarray(0, shift), memory.subarray(0, shift))).toBe(0);
        }
      }
    }
  });

  it("gives the same in parts as at once, and nothing when applied twice", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 600 }),
        maskKeys,
        fc.array(fc.nat(600), { maxLength: 5 }),
        (bytes, maskKey, cuts) => {
          const whole = bytes.slice();
          applyMask(whole, maskKey, 0);
          const inParts = bytes.slice();
          let phase = 0;
          const ends = [...cuts.map((cut) => Math.min(cut, bytes.length)), bytes.length].sort(
            (a, b) => a - b,
          );
          let start = 0;
          for (const end of ends) {
            phase = applyMask(inParts.subarray(start, end), maskKey, phase);
            start = end;
          }
          expect(inParts).toEqual(whole);
          expect(whole).toEqual(maskedLiterally(bytes, maskKey, 0));
          applyMask(whole, maskKey, 0);
          expect(whole).toEqual(bytes);
        },
      ),
    );
  });

  it("takes signed keys for what their bits say", () => {
    const signed = new Uint8Array(100);
    const unsigned = new Uint8Array(100);
    applyMask(signed, -2, 1);
    applyMask(unsigned, 0xffff_fffe, 1);
    expect(signed).toEqual(unsigned);
  });
});
