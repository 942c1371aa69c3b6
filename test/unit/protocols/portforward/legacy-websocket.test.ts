import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  dataChannelOf,
  decodePortPrefix,
  encodePortPrefix,
  errorChannelOf,
  parsePortsQuery,
} from "../../../../protocols/portforward/legacy-websocket.ts";

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
