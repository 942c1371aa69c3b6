import { expect, it } from "vitest";

const MEGABYTES = 8 * 2 ** 20;

it("bytes are equal when each is, of whatever length, and of the same kind", () => {
  expect(Buffer.alloc(MEGABYTES, 7)).toEqual(Buffer.alloc(MEGABYTES, 7));
  expect({ data: [new Uint8Array(MEGABYTES)] }).toStrictEqual({ data: [new Uint8Array(MEGABYTES)] });
  expect(Buffer.from("abc")).not.toEqual(Buffer.from("abd"));
  expect(Buffer.from("abc")).not.toEqual(Buffer.from("ab"));
  expect(new Uint8Array([1])).not.toStrictEqual(Buffer.of(1));
});
