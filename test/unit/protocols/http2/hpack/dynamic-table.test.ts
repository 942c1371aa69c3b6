import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  bytesOf,
  DynamicTable,
  type HeaderEntry,
} from "../../../../../protocols/http2/hpack/dynamic-table.ts";

const entriesOf = (table: DynamicTable): (HeaderEntry | undefined)[] =>
  Array.from({ length: 200 }, (_, index) => table.get(index)).filter((entry) => entry !== undefined);

describe("the dynamic table", () => {
  it("C.5: counts 32 bytes for each entry, and has the newest first", () => {
    // The responses of RFC 7541 appendix C.5, in a table of 256 bytes.
    const table = new DynamicTable(256);
    const entries: HeaderEntry[] = [
      [":status", "302"],
      ["cache-control", "private"],
      ["date", "Mon, 21 Oct 2013 20:13:21 GMT"],
      ["location", "https://www.example.com"],
    ];
    for (const entry of entries) table.add(entry);
    expect(entries.map(bytesOf)).toEqual([42, 52, 65, 63]);
    expect(entriesOf(table)).toEqual(entries.toReversed());
    table.add([":status", "307"]);
    expect(entriesOf(table)).toEqual([[":status", "307"], ...entries.slice(1).toReversed()]);
  });

  it("is emptied by an entry larger than itself, and takes one of its size", () => {
    const table = new DynamicTable(40);
    table.add(["abcd", "efgh"]);
    expect(entriesOf(table)).toEqual([["abcd", "efgh"]]);
    table.add(["abcd", "efghi"]);
    expect(entriesOf(table)).toEqual([]);
  });

  it("keeps the newest entries that fit, whatever is added and however it is resized", () => {
    const text = fc.string({ maxLength: 20 });
    const step = fc.oneof(fc.tuple(text, text), fc.nat(300));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const table = new DynamicTable(300);
        let maxBytes = 300;
        let expected: HeaderEntry[] = [];
        for (const one of steps) {
          if (typeof one === "number") maxBytes = one;
          else expected = [one, ...expected];
          if (typeof one === "number") table.resize(one);
          else table.add(one);
          const total = (count: number) =>
            expected.slice(0, count).reduce((bytes, entry) => bytes + bytesOf(entry), 0);
          while (total(expected.length) > maxBytes) expected = expected.slice(0, -1);
          expect(entriesOf(table)).toEqual(expected);
        }
      }),
    );
  });
});
