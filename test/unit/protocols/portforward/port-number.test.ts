import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parsePort } from "../../../../protocols/portforward/stream-headers.ts";

describe("parsePort", () => {
  it("reads every port", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 0xffff }), (port) => {
        expect(parsePort(`${port}`)).toEqual({ ok: true, port });
        expect(parsePort(`00${port}`)).toEqual({ ok: true, port });
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
    expect(parsePort(text, "list")).toEqual({
      ok: false,
      reason: `unable to parse "list" as a port: ${cause}`,
    });
  });

  it("refuses 0", () => {
    expect(parsePort("00")).toEqual({ ok: false, reason: 'port "00" must be > 0' });
  });
});
