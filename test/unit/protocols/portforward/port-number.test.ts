import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parsePortsQuery } from "../../../../protocols/portforward/index.ts";

describe("a port", () => {
  it("reads every port", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 0xffff }), (port) => {
        expect(parsePortsQuery([`${port},00${port}`])).toEqual({ ok: true, ports: [port, port] });
      }),
    );
  });

  it.each([
    ["", "invalid syntax"],
    [" 80", "invalid syntax"],
    ["80\n", "invalid syntax"],
    ["+80", "invalid syntax"],
    ["8e1", "invalid syntax"],
    ["\u0661", "invalid syntax"],
    ["65536", "value out of range"],
    ["9".repeat(400), "value out of range"],
  ])("refuses %j in the words of Go, and quotes the list that it is from", (text, problem) => {
    const cause = `strconv.ParseUint: parsing ${JSON.stringify(text)}: ${problem}`;
    const list = `80,${text}`;
    expect(parsePortsQuery([list])).toEqual({
      ok: false,
      reason: `unable to parse ${JSON.stringify(list)} as a port: ${cause}`,
    });
  });

  it("refuses 0", () => {
    expect(parsePortsQuery(["00"])).toEqual({ ok: false, reason: 'port "00" must be > 0' });
  });
});
