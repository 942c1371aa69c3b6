import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  ByteCollector,
  latin1Text,
  readUint16,
  readUint24,
  readUint32,
  writeUint24,
  writeUint32,
} from "../../../../protocols/bytes/index.ts";

describe("latin1Text", () => {
  it("gives each byte the character of its number, however many there are", () => {
    const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => index % 256);
    expect(latin1Text(bytes, 0, bytes.length)).toBe(Buffer.from(bytes).toString("latin1"));
  });

  it("reads from the start to before the end, also around a part's border", () => {
    const bytes = Uint8Array.from({ length: 2100 }, (_, index) => index % 251);
    fc.assert(
      fc.property(fc.nat(2100), fc.constantFrom(0, 1, 1023, 1024, 1025, 2048), (start, length) => {
        const end = Math.min(bytes.length, start + length);
        expect(latin1Text(bytes, start, end)).toBe(Buffer.from(bytes).toString("latin1", start, end));
      }),
    );
  });
});

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

describe("collected bytes", () => {
  it("are those of all parts, whatever becomes of the parts", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 700 }), { maxLength: 20 }), (parts) => {
        const collector = new ByteCollector();
        const whole = Buffer.concat(parts);
        for (const part of parts) {
          const copy = part.slice();
          collector.append(copy);
          copy.fill(0xee);
        }
        expect(Buffer.from(collector.bytes).equals(whole)).toBe(true);
        expect(collector.byteLength).toBe(whole.length);
      }),
    );
  });

  it("take at most twice their memory, and are moved rarely, however small the parts are", () => {
    const collector = new ByteCollector();
    const memories = new Set<ArrayBufferLike>();
    const one = Uint8Array.of(7);
    for (let count = 0; count < 1_000_000; count += 1) {
      collector.append(one);
      memories.add(collector.bytes.buffer);
    }
    expect(collector.bytes.buffer.byteLength).toBeLessThan(2 * 1_000_000 + 1);
    expect(memories.size).toBeLessThan(20);
  });
});
