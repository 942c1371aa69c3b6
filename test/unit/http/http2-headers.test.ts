import { setFlagsFromString } from "node:v8";
import { describe, expect, it } from "vitest";
import type { HeaderList } from "../../../packages/client/src/http/header-list.ts";
import { requestEdit } from "../../../src/http/hop-by-hop.ts";
import { http2Headers, http2ResponseHeaders } from "../../../src/http/http2-headers.ts";

/** Asks V8 itself. Its syntax is allowed only while the function is compiled. */
function fastPropertiesTest(): (value: object) => boolean {
  setFlagsFromString("--allow-natives-syntax");
  try {
    return new Function("value", "return %HasFastProperties(value)") as (value: object) => boolean;
  } finally {
    setFlagsFromString("--no-allow-natives-syntax");
  }
}

describe("headers in node:http2's form", () => {
  it("may be named as properties of every object, and inherit none", () => {
    const lines: HeaderList = ["__proto__", "constructor", "valueof"].map((name) => [name, "x"]);
    expect(Object.entries(http2Headers(lines))).toEqual(lines);
    const empty = http2Headers([]);
    expect(["__proto__", "constructor", "toString"].filter((name) => name in empty)).toEqual([]);
  });

  it("are lower-cased; repeated ones become lists, or the first if they may occur once", () => {
    const lines: HeaderList = [
      ["X-A", "1"],
      ["x-a", "2"],
      ["X-a", "3"],
      ["ETag", '"1"'],
      ["etag", '"2"'],
      ["Connection", "close"],
      [":status", "500"],
    ];
    expect({ ...http2ResponseHeaders(200, lines) }).toEqual({
      "x-a": ["1", "2", "3"],
      etag: '"1"',
      ":status": 200,
    });
  });

  it("name a request's first Host as its authority", () => {
    const lines: HeaderList = [
      ["Host", "a"],
      [":authority", "forged"],
      ["host", "b"],
      ["x-host", "c"],
    ];
    expect({ ...http2Headers(lines, ":authority") }).toEqual({ ":authority": "a", "x-host": "c" });
    expect({ ...http2Headers(lines) }).toEqual({ host: "a", "x-host": "c" });
  });

  it("cost little memory: V8 keeps the usual ones in its fast form", () => {
    const isFast = fastPropertiesTest();
    const lines: HeaderList = Array.from({ length: 12 }, (_, index) => [`x-${index}`, "x"]);
    expect(isFast(http2ResponseHeaders(200, lines))).toBe(true);
  });
});

it.each([
  ["trailers", true],
  ["Trailers", true],
  ["gzip, trailers;q=0.5", true],
  ["gzip", false],
  ["", false],
])("TE: %s accepts trailers: %s", (te, accepts) => {
  const expected = accepts ? [["TE", "trailers"]] : [];
  expect(requestEdit([["te", te]]).lines()).toEqual(expected);
  const twice: HeaderList = [
    ["TE", "gzip"],
    ["TE", te],
  ];
  expect(requestEdit(twice).lines()).toEqual(expected);
});
