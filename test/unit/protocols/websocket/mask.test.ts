import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyMask } from "../../../../protocols/websocket/index.ts";

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
