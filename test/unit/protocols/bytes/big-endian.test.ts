import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  readUint16,
  readUint24,
  readUint32,
  writeUint24,
  writeUint32,
} from "../../../../protocols/bytes/big-endian.ts";

const offsets = fc.nat(8);

describe("numbers in network byte order", () => {
  it("are read as Node's Buffer reads them, at any offset", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 12, maxLength: 12 }), offsets, (bytes, offset) => {
        const buffer = Buffer.from(bytes);
        expect(readUint16(bytes, offset)).toBe(buffer.readUInt16BE(offset));
        expect(readUint24(bytes, offset)).toBe(buffer.readUIntBE(offset, 3));
        expect(readUint32(bytes, offset)).toBe(buffer.readUInt32BE(offset));
      }),
    );
  });

  it("are unsigned up to the largest", () => {
    const ones = new Uint8Array(4).fill(0xff);
    expect([readUint16(ones, 0), readUint24(ones, 0), readUint32(ones, 0)]).toEqual([
      0xffff, 0xff_ffff, 0xffff_ffff,
    ]);
  });

  it("are written as Buffer writes them, and change no neighbour", () => {
    fc.assert(
      fc.property(fc.nat(0xffff_ffff), offsets, (value, offset) => {
        const bytes = new Uint8Array(12).fill(0xee);
        const expected = Buffer.alloc(12, 0xee);
        writeUint32(bytes, offset, value);
        expected.writeUInt32BE(value, offset);
        expect(Buffer.from(bytes)).toEqual(expected);
        writeUint24(bytes, offset, value >>> 8);
        expected.writeUIntBE(value >>> 8, offset, 3);
        expect(Buffer.from(bytes)).toEqual(expected);
      }),
    );
  });
});
