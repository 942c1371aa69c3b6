import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventLines } from "../../../src/recording/format/asciicast.ts";
import { OutputLine } from "../../../src/recording/format/output-line.ts";

function lineOf(parts: readonly Uint8Array[], bytes: number): string {
  const line = new OutputLine('[0.000, "o", "', bytes);
  for (const part of parts) line.add(part);
  return line.end().toString("utf8");
}

describe("a line of output", () => {
  it("is what JSON.stringify makes of its text, wherever it is cut", () => {
    const text = fc.string({
      unit: fc.oneof(
        fc.string({ unit: "grapheme", maxLength: 30 }),
        fc.constantFrom('"', "\\", "\r\n", "\u001b["),
      ),
      maxLength: 60,
    });
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 50 }), fc.nat(200), (each, size, bytes) => {
        const all = Buffer.from(each, "utf8");
        const parts = Array.from({ length: Math.ceil(all.byteLength / size) }, (_, index) =>
          all.subarray(index * size, (index + 1) * size),
        );
        expect(lineOf(parts, bytes)).toBe(`${new EventLines().line(0, "o", each)}\n`);
      }),
      { numRuns: 500 },
    );
  });

  it("escapes each character of ASCII at each place of a line", () => {
    for (let byte = 0; byte < 128; byte++)
      for (let place = 0; place < 60; place++) {
        const text = `abcd${"e".repeat(place)}${String.fromCharCode(byte)}${"f".repeat(60 - place)}`;
        expect(lineOf([Buffer.from(text)], 0)).toBe(`${new EventLines().line(0, "o", text)}\n`);
      }
  });

  it.each([
    ["\u0000", 100_000],
    ["é", 40_000],
    ["\u{1f600}\n", 9_000],
  ])("grows with its text: %j", (unit, count) => {
    const text = unit.repeat(count);
    expect(lineOf([Buffer.from(text), Buffer.from(text)], 1)).toBe(
      `${new EventLines().line(0, "o", text + text)}\n`,
    );
  });

  it("keeps no view of its parts", () => {
    const line = new OutputLine('[0.000, "o", "', 4);
    const part = Buffer.from("text");
    line.add(part);
    part.fill("x");
    expect(line.end().toString()).toBe('[0.000, "o", "text"]\n');
  });
});
