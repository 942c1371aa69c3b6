import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../../../protocols/protocol-error.ts";
import { beginsProxyHeader, decodeProxyHeader } from "../../../../protocols/proxy-protocol/index.ts";
import { fixedBound } from "../../../support/fixed-bound.ts";
import {
  binaryHeader,
  crc32c,
  tlv,
  withChecksum,
} from "../../../support/protocols/proxy-protocol/binary-header.ts";

const MAX_PROXY_HEADER_BYTES = fixedBound("protocols/proxy-protocol/index.ts", "MAX_PROXY_HEADER_BYTES");

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

const decoded = (bytes: Uint8Array) => decodeProxyHeader(bytes);
const codeOf = (bytes: Uint8Array): string | undefined => {
  try {
    decodeProxyHeader(bytes);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(ProtocolError);
    return (error as ProtocolError).code;
  }
};

describe("version 2", () => {
  it.each([
    ["IPv4", binaryHeader(0x21, 0x11, INET), { address: "203.0.113.9", port: 56324 }],
    ["IPv6", binaryHeader(0x21, 0x21, INET6), { address: "2001:db8:0:0:0:0:0:9", port: 5 }],
    ["a Unix socket", binaryHeader(0x21, 0x31, Array(216).fill(97)), undefined],
    ["no address family", binaryHeader(0x21, 0x00, []), undefined],
    ["datagrams", binaryHeader(0x21, 0x12, INET), undefined],
    ["the proxy's own connection", binaryHeader(0x20, 0x00, []), undefined],
    ["the proxy's own, with anything", binaryHeader(0x20, 0xff, [1, 2, 3]), undefined],
    [
      "TLVs",
      binaryHeader(0x21, 0x11, [...INET, ...tlv(0x02, text("a.example.com")), ...tlv(0x04, [])]),
      { address: "203.0.113.9", port: 56324 },
    ],
    ["a checksum", withChecksum(0x21, 0x11, INET), { address: "203.0.113.9", port: 56324 }],
  ])("%s", (_what, header, peer) => {
    expect(decoded(Buffer.concat([header, text("\x16\x03")]))).toEqual({ peer, byteLength: header.length });
    for (let length = 0; length < header.length; length++)
      expect(decoded(header.subarray(0, length))).toBeUndefined();
  });

  it.each([
    ["another version", binaryHeader(0x11, 0x11, INET), "unsupported"],
    ["another command", binaryHeader(0x22, 0x11, INET), "unsupported"],
    ["another family", binaryHeader(0x21, 0x41, INET), "unsupported"],
    ["another transport", binaryHeader(0x21, 0x13, INET), "unsupported"],
    ["fewer bytes than addresses have", binaryHeader(0x21, 0x11, INET.slice(1)), "malformed-frame"],
    ["a cut TLV", binaryHeader(0x21, 0x11, [...INET, 1, 0]), "malformed-frame"],
    [
      "a TLV that is longer than the header",
      binaryHeader(0x21, 0x11, [...INET, 1, 0, 2, 0]),
      "malformed-frame",
    ],
    ["a wrong checksum", binaryHeader(0x21, 0x11, [...INET, ...tlv(3, [1, 2, 3, 4])]), "malformed-frame"],
    ["a short checksum", binaryHeader(0x21, 0x11, [...INET, ...tlv(3, [1, 2, 3])]), "malformed-frame"],
    ["two checksums", withChecksum(0x21, 0x11, [...INET, ...tlv(3, [0, 0, 0, 0])]), "malformed-frame"],
    ["another signature", binaryHeader(0x21, 0x11, INET).fill(0, 5, 6), "malformed-frame"],
  ])("refuses %s", (_what, header, code) => {
    expect(codeOf(header)).toBe(code);
  });

  it("refuses a header past the bound by its length alone", () => {
    const content = (bytes: number) => [...INET, ...tlv(0x04, Array(bytes - INET.length - 3).fill(0))];
    const largest = binaryHeader(0x21, 0x11, content(MAX_PROXY_HEADER_BYTES - 16));
    expect(decoded(largest)?.byteLength).toBe(MAX_PROXY_HEADER_BYTES);
    const larger = binaryHeader(0x21, 0x11, content(MAX_PROXY_HEADER_BYTES - 15));
    expect(codeOf(larger.subarray(0, 16))).toBe("frame-too-large");
  });

  it("checks what CRC-32C is known to give", () => {
    // RFC 3720 appendix B.4.
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa);
    expect(crc32c(new Uint8Array(32).fill(0xff))).toBe(0x62a8ab43);
    expect(crc32c(Uint8Array.from({ length: 32 }, (_, index) => index))).toBe(0x46dd794e);
  });
});
