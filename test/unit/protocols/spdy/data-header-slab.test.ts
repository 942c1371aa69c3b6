import { expect, it } from "vitest";
import { carveDataHeader } from "../../../../protocols/spdy/data-header-slab.ts";

it("DATA headers are right, and keep what they say while thousands follow", () => {
  const headers = Array.from({ length: 2_000 }, (_, index) =>
    carveDataHeader(index + 1, index * 100, index % 2 === 0),
  );
  for (const [index, header] of headers.entries()) {
    const expected = Buffer.alloc(8);
    expected.writeUInt32BE(index + 1, 0);
    expected.writeUInt32BE(index * 100, 4);
    expected.writeUInt8(index % 2 === 0 ? 1 : 0, 4);
    expect(Buffer.from(header)).toEqual(expected);
  }
});
