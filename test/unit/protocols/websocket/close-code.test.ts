import { describe, expect, it } from "vitest";
import { ProtocolError, type ProtocolErrorCode } from "../../../../protocols/protocol-error.ts";
import { closeCodeOf, isWireCloseCode } from "../../../../protocols/websocket/close-code.ts";

describe("close codes", () => {
  it("may be in a frame: 1000 to 1003, 1007 to 1014 and 3000 to 4999", () => {
    const sent = Array.from({ length: 6_000 }, (_, code) => code).filter(isWireCloseCode);
    const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);
    expect(sent).toEqual([...range(1000, 1003), ...range(1007, 1014), ...range(3000, 4999)]);
    for (const code of [1000.5, Number.NaN, -1000, Number.POSITIVE_INFINITY])
      expect(isWireCloseCode(code)).toBe(false);
  });

  it.each<[ProtocolErrorCode, number]>([
    ["invalid-utf8", 1007],
    ["too-many-fragments", 1008],
    ["frame-too-large", 1009],
    ["message-too-large", 1009],
    ["malformed-frame", 1002],
    ["unsupported", 1002],
  ])("a peer that is refused for %s gets %i", (code, closeCode) => {
    expect(closeCodeOf(new ProtocolError(code, ""))).toBe(closeCode);
  });
});
