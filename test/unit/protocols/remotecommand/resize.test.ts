import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeResize, ResizeDecoder, type TerminalSize } from "../../../../protocols/remotecommand/index.ts";

const encoder = new TextEncoder();
const size = (width: number, height: number): TerminalSize => ({ width, height });

const rows: [name: string, text: string, sizes: TerminalSize[]][] = [
  ["one value", '{"Width":123,"Height":45}\n', [size(123, 45)]],
  ["several values in one message", '{"Width":1,"Height":2}{"Width":3,"Height":4}', [size(1, 2), size(3, 4)]],
  ["keys in another case, an unknown key", '{"width":1,"HEIGHT":2,"x":{"y":"}"}}', [size(1, 2)]],
  ["a quote and a brace within a string", '{"a":"\\"}","Width":7,"Height":8}', [size(7, 8)]],
  ["absent keys", "{}", [size(0, 0)]],
  ["nothing after a wrong value", '{"Width":1,"Height":2}{"Width":-1}{"Width":3,"Height":4}', [size(1, 2)]],
  ["nothing after a value too large", '{"Width":65536,"Height":2}{"Width":3,"Height":4}', []],
  ["nothing after a fraction", '{"Width":1.5,"Height":2}{"Width":3,"Height":4}', []],
  ["nothing after what is no object", '12 {"Width":3,"Height":4}', []],
  ["nothing after broken JSON", '{"Width":}{"Width":3,"Height":4}', []],
  ["nothing of an unfinished value", '{"Width":3,"Height":4', []],
];

describe("ResizeDecoder", () => {
  for (const [name, text, sizes] of rows) {
    it(`gives ${name}, cut at any byte`, () => {
      const bytes = encoder.encode(text);
      for (let at = 0; at <= bytes.length; at++) {
        const decoder = new ResizeDecoder();
        expect([...decoder.push(bytes.subarray(0, at)), ...decoder.push(bytes.subarray(at))]).toEqual(sizes);
      }
    });
  }

  it("ends at a value longer than its limit", () => {
    const value = '{"Width":1,"Height":2}';
    expect(new ResizeDecoder(value.length).push(encoder.encode(value))).toEqual([size(1, 2)]);
    const tooSmall = new ResizeDecoder(value.length - 1);
    expect(tooSmall.push(encoder.encode(value + value))).toEqual([]);
  });

  it("reads what encodeResize writes", () => {
    const cells = fc.nat(0xffff);
    fc.assert(
      fc.property(cells, cells, (width, height) => {
        expect(new ResizeDecoder().push(encodeResize({ width, height }))).toEqual([{ width, height }]);
      }),
    );
  });

  it("never throws", () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.string(), fc.json())), (texts) => {
        const decoder = new ResizeDecoder();
        for (const text of texts) decoder.push(encoder.encode(text));
      }),
    );
  });
});
