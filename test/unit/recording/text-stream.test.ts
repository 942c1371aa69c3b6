import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TextStream } from "../../../src/recording/format/text-stream.ts";

function decode(parts: readonly Uint8Array[]) {
  const stream = new TextStream();
  const decoded = parts.flatMap((part) => stream.push(part) ?? []);
  const rest = stream.flush();
  return rest === undefined ? decoded : [...decoded, rest];
}

describe("a stream of text", () => {
  it("decodes whole characters wherever it is cut", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 40 }),
        fc.integer({ min: 1, max: 5 }),
        (text, size) => {
          const bytes = Buffer.from(text, "utf8");
          const parts = Array.from({ length: Math.ceil(bytes.byteLength / size) }, (_, index) =>
            bytes.subarray(index * size, (index + 1) * size),
          );
          const decoded = decode(parts);
          expect(decoded.map((each) => each.bytes.toString("utf8")).join("")).toBe(text);
          expect(decoded.every(({ isText }) => isText)).toBe(true);
        },
      ),
    );
  });

  it("keeps the exact bytes, and says whether they are UTF-8", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 9 }), { maxLength: 9 }), (parts) => {
        const decoded = decode(parts);
        expect(Buffer.concat(decoded.map(({ bytes }) => bytes))).toEqual(Buffer.concat(parts));
        for (const { bytes, isText } of decoded)
          expect(Buffer.from(bytes.toString("utf8")).equals(bytes)).toBe(isText);
      }),
    );
  });

  it.each([
    ["", 0],
    ["61", 0],
    ["c3", 1],
    ["c3a4", 0],
    ["e282", 2],
    ["f09f98", 3],
    ["f09f9880", 0],
    ["ff", 0],
    ["80", 0],
    ["808080", 0],
  ])("waits for the rest of a character: %s", (hex, tail) => {
    const stream = new TextStream();
    stream.push(Buffer.from(hex, "hex"));
    expect(stream.flush()?.bytes.byteLength ?? 0).toBe(tail);
  });
});
