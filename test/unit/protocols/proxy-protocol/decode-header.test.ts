import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../../../protocols/protocol-error.ts";
import { beginsProxyHeader, decodeProxyHeader } from "../../../../protocols/proxy-protocol/decode-header.ts";
import { binaryHeader, withChecksum } from "../../../support/protocols/proxy-protocol/binary-header.ts";

const text = (line: string): Uint8Array => Buffer.from(line, "latin1");
const INET = [203, 0, 113, 9, 198, 51, 100, 1, 0xdc, 0x04, 0x01, 0xbb];
const INET6 = [0x20, 0x01, 0x0d, 0xb8, ...Array(11).fill(0), 9, ...Array(15).fill(0), 1, 0, 5, 0, 6];

describe("a header", () => {
  it("is of either version, by its first byte", () => {
    const line = "PROXY TCP4 203.0.113.9 198.51.100.1 56324 443\r\n";
    const peer = { address: "203.0.113.9", port: 56324 };
    expect(decodeProxyHeader(text(line))).toEqual({ peer, byteLength: line.length });
    expect(decodeProxyHeader(binaryHeader(0x21, 0x11, INET))).toEqual({ peer, byteLength: 28 });
    expect(decodeProxyHeader(new Uint8Array(0))).toBeUndefined();
    expect(() => decodeProxyHeader(text("GET / HTTP/1.1\r\n"))).toThrow("no PROXY protocol header");
  });
});

describe("the beginning of a connection", () => {
  it.each([
    ["PROXY TCP4", true],
    ["PROXY ", true],
    ["P", undefined],
    ["PR", undefined],
    ["PRI * HTTP/2.0", false],
    ["POST / HTTP/1.1", false],
    ["\r\n\r\n\0\r\nQUIT\n", true],
    ["\r\n", undefined],
    ["\r\nGET / HTTP/1.1", false],
    ["", undefined],
    ["\x16\x03\x01", false],
  ])("%j", (bytes, expected) => {
    expect(beginsProxyHeader(text(bytes))).toBe(expected);
  });
});

it("of any bytes a header is whole, not yet, or refused, and more bytes do not change what was whole", () => {
  const part = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.constantFrom(
      text("PROXY "),
      text("TCP4 1.2.3.4 5.6.7.8 1 2\r\n"),
      text("UNKNOWN"),
      text("\r\n"),
      binaryHeader(0x21, 0x11, INET),
      withChecksum(0x21, 0x21, INET6),
    ),
  );
  const outcomeOf = (bytes: Uint8Array) => {
    try {
      return decodeProxyHeader(bytes);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return error.message;
    }
  };
  fc.assert(
    fc.property(fc.array(part, { maxLength: 4 }), (parts) => {
      const bytes = Buffer.concat(parts);
      let settled: unknown;
      for (let length = 0; length <= bytes.length; length++) {
        const outcome = outcomeOf(bytes.subarray(0, length));
        if (settled !== undefined) expect(outcome).toEqual(settled);
        settled = outcome;
        if (typeof outcome === "object") expect(outcome.byteLength).toBeLessThanOrEqual(length);
      }
    }),
  );
});
