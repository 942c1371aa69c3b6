import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteCollector } from "../../../../protocols/bytes/index.ts";

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
