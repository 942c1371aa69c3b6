import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { deliveryOf, parseResponseHead } from "../../../../protocols/http1/response-framing.ts";

type Lines = readonly string[];
const CHUNKED: Lines = ["Transfer-Encoding", "chunked"];
const of = (headers: Lines, { method = "GET", minorVersion = 1 as 0 | 1, status = 200 } = {}) =>
  deliveryOf(method, { headers, minorVersion, status, reason: "" }, "none");
const asGo = (headers: Lines, minorVersion: 0 | 1 = 1) =>
  deliveryOf("GET", { headers, minorVersion, status: 200, reason: "" }, "as-go");
const length = (value: string): Lines => ["Content-Length", value];

describe("a body ends", () => {
  it.each<[string, Lines, number | string, boolean]>([
    ["after its length", length("2"), 2, true],
    ["after a length with zeros", length("0002"), 2, true],
    ["after the same length twice", [...length("2"), "content-length", "2"], 2, true],
    ["after the largest length", length("9".repeat(15)), 999_999_999_999_999, true],
    ["with the last chunk", ["transfer-encoding", "Chunked"], "chunked", true],
    ["with the connection", [], "until-close", false],
    ["with the connection, although it is to live", ["Connection", "keep-alive"], "until-close", false],
    ["after its length; then the server closes", ["Connection", "x, Close", ...length("2")], 2, false],
    [
      "after its length; close wins",
      ["Connection", "close", "connection", "keep-alive", ...length("2")],
      2,
      false,
    ],
    [
      "after its length, with another option that contains close",
      ["Connection", "closed", ...length("2")],
      2,
      true,
    ],
  ])("%s", (_name, headers, framing, keepsAlive) => {
    expect(of(headers)).toEqual({ framing, keepsAlive });
  });

  it.each<[Lines, number | string, boolean]>([
    [length("2"), 2, false],
    [["Connection", "Keep-Alive", ...length("2")], 2, true],
    [["Connection", "keep-alive", ...CHUNKED], "chunked", false],
  ])("in HTTP/1.0 %j", (headers, framing, keepsAlive) => {
    expect(of(headers, { minorVersion: 0 })).toEqual({ framing, keepsAlive });
  });

  it.each([
    ["HEAD", 200],
    ["GET", 101],
    ["GET", 103],
    ["GET", 204],
    ["GET", 304],
  ])("at once: %s %i has none, whatever its lines say", (method, status) => {
    for (const headers of [length("5"), CHUNKED, []]) {
      expect(of(headers, { method, status })).toEqual({ framing: 0, keepsAlive: true });
    }
    expect(of(["Connection", "close"], { method, status }).keepsAlive).toBe(false);
  });

  it("at once behind a tunnel's 2xx, also if its lines are contradictory, but not behind its refusal", () => {
    const headers = [...length("3"), ...CHUNKED];
    for (const status of [200, 299])
      expect(of(headers, { method: "CONNECT", status })).toEqual({ framing: 0, keepsAlive: true });
    expect(of(length("3"), { method: "CONNECT", status: 403 }).framing).toBe(3);
    expect(of(length("3"), { method: "CONNECT", status: 300 }).framing).toBe(3);
  });

  it("after any length that is written in decimal", () => {
    fc.assert(fc.property(fc.nat(999_999_999_999_999), (bytes) => of(length(`${bytes}`)).framing === bytes));
  });
});

describe("a framing is refused for", () => {
  const BOTH = "both Content-Length and Transfer-Encoding";
  const CODING = "unsupported transfer encoding";
  const BAD = "bad Content-Length";
  it.each<[string, Lines, string]>([
    [
      "two lengths",
      [...length("1"), ...length("2")],
      "http: message cannot contain multiple Content-Length headers",
    ],
    [
      "lengths equal but in writing",
      [...length("1"), ...length("01")],
      "http: message cannot contain multiple Content-Length headers",
    ],
    ["a list of lengths", length("1, 1"), BAD],
    ["a negative length", length("-1"), BAD],
    ["a length with a sign", length("+1"), BAD],
    ["a hexadecimal length", length("0x1"), BAD],
    ["an empty length", length(""), "invalid empty Content-Length"],
    ["a length past 2^53", length("1".repeat(16)), BAD],
    ["a length and chunks", [...length("1"), ...CHUNKED], BOTH],
    ["chunks and a length", [...CHUNKED, ...length("1")], BOTH],
    ["another coding", ["Transfer-Encoding", "gzip, chunked"], CODING],
    ["chunked twice", [...CHUNKED, ...CHUNKED], CODING],
    ["a disguised coding", ["Transfer-Encoding", "xchunked"], CODING],
    ["an empty coding", ["Transfer-Encoding", ""], CODING],
  ])("%s, whether or not there is a body", (_name, headers, message) => {
    const malformed = expect.objectContaining({ code: "malformed-message", message });
    expect(() => of(headers)).toThrow(malformed);
    expect(() => of(headers, { method: "HEAD" })).toThrow(malformed);
  });
});

describe("as Go reads", () => {
  it("chunks win over a length, and HTTP/1.0 has no codings", () => {
    expect(asGo([...length("9"), ...CHUNKED]).framing).toBe("chunked");
    expect(asGo([...length("9"), "Transfer-Encoding", "gzip"], 0).framing).toBe(9);
  });

  it("different lengths are quoted, and other codings refused", () => {
    const refusal = (() => {
      try {
        return asGo([...length("3"), "A", "4", "content-length", "5"]);
      } catch (error) {
        return error as { quoting(quote: (text: string) => string): string };
      }
    })();
    expect("quoting" in refusal && refusal.quoting(JSON.stringify)).toBe(
      'http: message cannot contain multiple Content-Length headers; got ["3" "5"]',
    );
    expect(() => asGo(["Transfer-Encoding", "gzip"])).toThrow("unsupported transfer encoding");
  });
});

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
