import { describe, expect, it } from "vitest";
import { parseResponseHead } from "../../../../protocols/http1/response-head.ts";

const malformed = (message: string) => expect.objectContaining({ code: "malformed-message", message });
const NO_STATUS_LINE = "malformed HTTP response";

describe("a response's head", () => {
  it.each([
    ["HTTP/1.1 200 OK\r\n", { minorVersion: 1, status: 200, reason: "OK" }],
    ["HTTP/1.0 404 Not Found\n", { minorVersion: 0, status: 404, reason: "Not Found" }],
    ["HTTP/1.1 299\r\n", { minorVersion: 1, status: 299, reason: "" }],
    ["HTTP/1.1 100 \r\n", { minorVersion: 1, status: 100, reason: "" }],
    ["HTTP/1.1 999 \xe9\t!\r\n", { minorVersion: 1, status: 999, reason: "\xe9\t!" }],
  ])("%j", (line, head) => {
    for (const leniency of ["none", "folded-lines", "as-go"] as const) {
      expect(parseResponseHead(`${line}A: b\r\n\r\n`, 1, leniency)).toEqual({ ...head, headers: ["A", "b"] });
    }
  });

  it.each([
    ["no HTTP", "SSH-2.0-OpenSSH", NO_STATUS_LINE],
    ["an empty line", "", NO_STATUS_LINE],
    ["a line cut short", "HTTP/1.1 20", "malformed HTTP status code"],
    ["HTTP/2", "HTTP/2.0 200 OK", NO_STATUS_LINE],
    ["HTTP/1.2", "HTTP/1.2 200 OK", NO_STATUS_LINE],
    ["lower case", "http/1.1 200 OK", "malformed HTTP version"],
    ["two spaces", "HTTP/1.1  200 OK", NO_STATUS_LINE],
    ["a code of two digits", "HTTP/1.1 20 OK", "malformed HTTP status code"],
    ["a code of four digits", "HTTP/1.1 2000 OK", "malformed HTTP status code"],
    ["a code that is none", "HTTP/1.1 2x0 OK", "malformed HTTP status code"],
    ["a code below 100", "HTTP/1.1 099 OK", NO_STATUS_LINE],
    ["a control in the reason", "HTTP/1.1 200 O\x01K", NO_STATUS_LINE],
    ["a bare CR behind the reason", "HTTP/1.1 200 OK\r", NO_STATUS_LINE],
  ])("is refused for %s", (_name, line, message) => {
    for (const leniency of ["none", "folded-lines"] as const) {
      expect(() => parseResponseHead(`${line}\r\n\r\n`, 9, leniency)).toThrow(malformed(message));
    }
  });

  it("may have folded lines if it is read so, and bounds its lines in each reading", () => {
    const folded = "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n";
    expect(() => parseResponseHead(folded, 2, "none")).toThrow("missing colon");
    const loose = "HTTP/1.1  200 OK\r\nA: b\r\n c\r\n\r\n";
    for (const [section, leniency] of [
      [folded, "folded-lines"],
      [folded, "as-go"],
      [loose, "as-go"],
    ] as const) {
      expect(parseResponseHead(section, 1, leniency).headers).toEqual(["A", "b c"]);
      expect(() => parseResponseHead(section, 0, leniency)).toThrow(
        expect.objectContaining({ code: "too-many-headers" }),
      );
    }
  });
});

describe("a head as Go's client reads it", () => {
  const goOf = (line: string) => parseResponseHead(`${line}\r\n\r\n`, 9, "as-go");

  it.each([
    ["HTTP/2.0 200 OK", { minorVersion: 1, status: 200, reason: "OK" }],
    ["HTTP/0.9 200 OK", { minorVersion: 0, status: 200, reason: "OK" }],
    ["HTTP/1.1   200 OK", { minorVersion: 1, status: 200, reason: "OK" }],
    ["HTTP/1.1 099 OK", { minorVersion: 1, status: 99, reason: "OK" }],
    ["HTTP/1.1 200 O\0\x1bK", { minorVersion: 1, status: 200, reason: "O\0\x1bK" }],
  ])("takes %j", (line, head) => {
    expect(goOf(line)).toEqual({ ...head, headers: [] });
  });

  it.each([
    ["hello", 'malformed HTTP response "hello"'],
    ["SSH-2.0 200 y", 'malformed HTTP version "SSH-2.0"'],
    ["HTTP/1.10 200 y", 'malformed HTTP version "HTTP/1.10"'],
    ["HTTP/1.1 2000 y", 'malformed HTTP status code "2000"'],
    ["HTTP/1.1 +20 y", 'malformed HTTP status code "+20"'],
  ])("refuses %j, and quotes what is wrong", (line, text) => {
    const quoted = (): string => {
      try {
        return JSON.stringify(goOf(line));
      } catch (error) {
        return (error as { quoting(quote: (text: string) => string): string }).quoting(JSON.stringify);
      }
    };
    expect(quoted()).toBe(text);
  });
});
