import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  dataChannelOf,
  decodePortPrefix,
  encodePortPrefix,
  errorChannelOf,
  parsePortsQuery,
  parseStreamHeaders,
  streamHeaders,
} from "../../../../protocols/portforward/index.ts";

describe("parseStreamHeaders", () => {
  const good = { streamtype: "data", port: "80", requestid: "4" };
  const syntax = (text: string) =>
    `unable to parse "${text}" as a port: strconv.ParseUint: parsing "${text}": invalid syntax`;
  const rows: [name: string, streamId: number, headers: Record<string, string>, result: object | string][] = [
    ["a data stream", 3, good, { streamType: "data", port: 80, requestId: "4" }],
    [
      "an error stream",
      1,
      { ...good, streamtype: "error" },
      { streamType: "error", port: 80, requestId: "4" },
    ],
    [
      "an old client's error stream",
      5,
      { streamtype: "error", port: "80" },
      { streamType: "error", port: 80, requestId: "5" },
    ],
    [
      "an old client's data stream",
      7,
      { streamtype: "data", port: "80" },
      { streamType: "data", port: 80, requestId: "5" },
    ],
    ["the highest port", 1, { ...good, port: "65535" }, { streamType: "data", port: 65535, requestId: "4" }],
    ["no port", 1, { streamtype: "data" }, '"port" header is required'],
    ["an empty port", 1, { ...good, port: "" }, '"port" header is required'],
    ["a port that is no number", 1, { ...good, port: "x" }, syntax("x")],
    ["a negative port", 1, { ...good, port: "-1" }, syntax("-1")],
    ["a hexadecimal port", 1, { ...good, port: "0x50" }, syntax("0x50")],
    [
      "a port too high",
      1,
      { ...good, port: "65536" },
      'unable to parse "65536" as a port: strconv.ParseUint: parsing "65536": value out of range',
    ],
    ["port 0", 1, { ...good, port: "0" }, 'port "0" must be > 0'],
    ["no stream type", 1, { port: "80" }, '"streamType" header is required'],
    ["an unknown stream type", 1, { ...good, streamtype: "foo" }, 'invalid stream type "foo"'],
  ];
  for (const [name, streamId, headers, result] of rows) {
    it(`answers ${name}`, () => {
      const parsed = parseStreamHeaders(streamId, new Map(Object.entries(headers)));
      expect(parsed.ok ? parsed.value : parsed.reason).toEqual(result);
    });
  }

  it("reads what streamHeaders writes", () => {
    const types = fc.constantFrom("error" as const, "data" as const);
    fc.assert(
      fc.property(types, fc.integer({ min: 1, max: 0xffff }), fc.nat(), (streamType, port, id) => {
        const value = { streamType, port, requestId: String(id) };
        expect(parseStreamHeaders(1, new Map(streamHeaders(value)))).toEqual({ ok: true, value });
      }),
    );
  });
});

describe("legacy port-forward", () => {
  const rows: [values: string[], result: readonly number[] | string][] = [
    [["80"], [80]],
    [
      ["80,90", "443"],
      [80, 90, 443],
    ],
    [[], 'query parameter "port" is required'],
    [[""], 'query parameter "port" cannot be empty'],
    [["80,"], 'unable to parse "80," as a port: strconv.ParseUint: parsing "": invalid syntax'],
    [["0"], 'port "0" must be > 0'],
    [
      ["1,70000"],
      'unable to parse "1,70000" as a port: strconv.ParseUint: parsing "70000": value out of range',
    ],
    [[Array(128).fill("80").join()], Array(128).fill(80)],
    [[...Array(128).fill("80"), "81"], "at most 128 ports can be forwarded at once"],
    [["80", ""], 'query parameter "port" cannot be empty'],
    [[Array(129).fill("80").join()], "at most 128 ports can be forwarded at once"],
  ];
  for (const [values, result] of rows) {
    it(`reads ${values.length} values: ${values.join("&port=").slice(0, 30)}`, () => {
      const parsed = parsePortsQuery(values);
      expect(parsed.ok ? parsed.ports : parsed.reason).toEqual(result);
    });
  }

  it("numbers channels two by two and writes ports little endian", () => {
    expect([dataChannelOf(0), errorChannelOf(0), dataChannelOf(3), errorChannelOf(3)]).toEqual([0, 1, 6, 7]);
    expect([...encodePortPrefix(18080)]).toEqual([0xa0, 0x46]);
    fc.assert(fc.property(fc.nat(0xffff), (port) => decodePortPrefix(encodePortPrefix(port)) === port));
    expect(decodePortPrefix(new Uint8Array(0))).toBe(0);
  });
});
