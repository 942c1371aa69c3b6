import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../../../protocols/protocol-error.ts";
import { decodeProxyHeader } from "../../../../protocols/proxy-protocol/index.ts";
import { fixedBound } from "../../../support/fixed-bound.ts";
import { isIPv4, isIPv6 } from "../../../support/protocols/proxy-protocol/text-addresses.ts";

const MAX_PROXY_LINE_BYTES = fixedBound("protocols/proxy-protocol/index.ts", "MAX_PROXY_LINE_BYTES");

const text = (line: string): Uint8Array => Buffer.from(line, "latin1");
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

describe("version 1", () => {
  it.each([
    ["PROXY TCP4 203.0.113.9 198.51.100.1 56324 443\r\n", { address: "203.0.113.9", port: 56324 }],
    [
      "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
      { address: "255.255.255.255", port: 65535 },
    ],
    ["PROXY TCP6 2001:db8::9 2001:db8::1 0 443\r\n", { address: "2001:db8::9", port: 0 }],
    ["PROXY TCP6 ::ffff:203.0.113.9 ::1 1 2\r\n", { address: "::ffff:203.0.113.9", port: 1 }],
    ["PROXY UNKNOWN\r\n", undefined],
    ["PROXY UNKNOWN ffff:f...f:ffff any thing 65535 x\r\n", undefined],
  ])("%j", (line, peer) => {
    expect(decoded(text(`${line}GET / HTTP/1.1\r\n`))).toEqual({ peer, byteLength: line.length });
    for (let length = 0; length < line.length; length++)
      expect(decoded(text(line.slice(0, length)))).toBeUndefined();
  });

  it.each([
    "GET / HTTP/1.1\r\n",
    "PROXY",
    "PROXY TCP4 203.0.113.9 198.51.100.1 1 2\n",
    "PROXY  TCP4 203.0.113.9 198.51.100.1 1 2\r\n",
    "PROXY TCP4 203.0.113.9 198.51.100.1  1 2\r\n",
    "PROXY TCP4 203.0.113.9 198.51.100.1 1 2 \r\n",
    "PROXY TCP4 203.0.113.9 198.51.100.1 1\r\n",
    "PROXY TCP4 203.0.113.9 198.51.100.1 01 2\r\n",
    "PROXY TCP4 203.0.113.9 198.51.100.1 1 65536\r\n",
    "PROXY TCP4 203.0.113.9 198.51.100.1 -1 2\r\n",
    "PROXY TCP4 203.0.113.09 198.51.100.1 1 2\r\n",
    "PROXY TCP4 203.0.113.256 198.51.100.1 1 2\r\n",
    "PROXY TCP4 2001:db8::9 2001:db8::1 1 2\r\n",
    "PROXY TCP6 203.0.113.9 198.51.100.1 1 2\r\n",
    "PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n",
    "PROXY UDP4 203.0.113.9 198.51.100.1 1 2\r\n",
    "PROXY UNKNOWNX\r\n",
    "proxy TCP4 203.0.113.9 198.51.100.1 1 2\r\n",
    "PROXY TCP4 203.0.113.9\0 198.51.100.1 1 2\r\n",
  ])("refuses %j", (line) => {
    if (line === "PROXY") expect(codeOf(text("PROXYZ"))).toBe("malformed-frame");
    else expect(codeOf(text(line))).toBe("malformed-frame");
  });

  it("reads a line of the bound's length, and none that is longer", () => {
    const longest = `PROXY UNKNOWN ${"x".repeat(MAX_PROXY_LINE_BYTES - 16)}\r\n`;
    expect(longest).toHaveLength(107);
    expect(decoded(text(longest))).toEqual({ peer: undefined, byteLength: 107 });
    const longer = `PROXY UNKNOWN ${"x".repeat(MAX_PROXY_LINE_BYTES - 15)}\r\n`;
    expect(decoded(text(longer.slice(0, 106)))).toBeUndefined();
    expect(codeOf(text(longer.slice(0, 107)))).toBe("frame-too-large");
    expect(codeOf(text(longer))).toBe("frame-too-large");
  });
});

describe("addresses", () => {
  it.each(["0.0.0.0", "255.255.255.255", "1.20.30.4"])("%s is IPv4", (address) => {
    expect([isIPv4(address), isIPv6(address)]).toEqual([true, false]);
  });

  it.each([
    ...["::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4"],
    ...["ABCD:ef01::", "64:ff9b::192.0.2.33"],
  ])("%s is IPv6", (address) => {
    expect([isIPv4(address), isIPv6(address)]).toEqual([false, true]);
  });

  it.each([
    ...["", ":", ":::", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4", "1.2.3.", " 1.2.3.4", "+1.2.3.4"],
    ...[
      "1:2:3:4:5:6:7",
      "1:2:3:4:5:6:7:8:9",
      "1::2::3",
      "12345::",
      "g::",
      "::1.2.3",
      "1.2.3.4::",
      "1:2:3:4:5:6:7:1.2.3.4",
    ],
    ...["1:2:3:4::5:6:7:8", "fe80::1%eth0", ":1", "1:", "::1:"],
  ])("%j is neither", (address) => {
    expect([isIPv4(address), isIPv6(address)]).toEqual([false, false]);
  });
});
