import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ChunkedBody } from "../../../../protocols/http1/chunked-body.ts";

/** What came out, and how many bytes were read of what was pushed. */
function read(wire: string, cuts: readonly number[] = [], maxLineBytes = 4_096) {
  const body = new ChunkedBody<Buffer>(maxLineBytes);
  body.start();
  let payload = "";
  let bytes = 0;
  const sink = {
    onBody: (part: Buffer) => {
      expect(part.length).toBeGreaterThan(0);
      payload += part.toString("latin1");
    },
  };
  const ends = [...cuts, wire.length];
  for (const [index, end] of ends.entries()) {
    const chunk = Buffer.from(wire.slice(ends[index - 1] ?? 0, end), "latin1");
    bytes += body.push(chunk, 0, sink);
  }
  return { payload, bytes, isAtTrailers: body.isAtTrailers };
}

const everyCut = (wire: string): number[] => Array.from({ length: wire.length + 1 }, (_, cut) => cut);

describe("a chunked body", () => {
  // RFC 9112 section 7.1: sizes are hexadecimal in either case, with extensions.
  const WIRE = 'A;name="v;w"\r\n0123456789\r\n02 \t\r\nab\r\n1;a=b;c\r\n\n\r\n000;last\r\n';

  it("is its chunks' data up to the last chunk's line, wherever it is cut", () => {
    const followed = `${WIRE}X-Sum: 1\r\n\r\n`;
    for (const cut of everyCut(followed)) {
      expect(read(followed, [cut])).toEqual({
        payload: "0123456789ab\n",
        bytes: WIRE.length,
        isAtTrailers: true,
      });
    }
  });

  it("is not at its trailers before the last line is whole", () => {
    for (const cut of everyCut(WIRE).slice(0, -1)) expect(read(WIRE.slice(0, cut)).isAtTrailers).toBe(false);
  });

  it("gives a chunk that is all data as it came", () => {
    const body = new ChunkedBody<Buffer>(16);
    const parts: Buffer[] = [];
    const sink = { onBody: (part: Buffer) => parts.push(part) };
    body.start();
    body.push(Buffer.from("4\r\n"), 0, sink);
    const data = Buffer.from("abc");
    body.push(data, 0, sink);
    expect(parts[0]).toBe(data);
    const rest = Buffer.from("..d\r\n0\r\n");
    expect(body.push(rest, 2, sink)).toBe(rest.length);
    expect(parts[1]?.buffer).toBe(rest.buffer);
    expect(String(parts[1])).toBe("d");
  });

  it("can start again after it has ended", () => {
    const body = new ChunkedBody<Buffer>(16);
    const parts: string[] = [];
    for (const text of ["a", "b"]) {
      body.start();
      expect(body.isAtTrailers).toBe(false);
      body.push(Buffer.from(`1\r\n${text}\r\n0\r\n`), 0, { onBody: (part) => parts.push(String(part)) });
    }
    expect(parts).toEqual(["a", "b"]);
  });

  it("is what was encoded, whatever it is", () => {
    const parts = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 5 });
    fc.assert(
      fc.property(parts, fc.boolean(), fc.array(fc.nat(250), { maxLength: 4 }), (chunks, isUpper, cuts) => {
        const hex = (bytes: number) => (isUpper ? bytes.toString(16).toUpperCase() : bytes.toString(16));
        const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");
        const wire = chunks.map((chunk) => `${hex(chunk.length)}\r\n${text(chunk)}\r\n`).join("");
        const ends = cuts.filter((cut) => cut <= wire.length).sort((one, other) => one - other);
        expect(read(`${wire}0\r\n`, ends)).toEqual({
          payload: chunks.map(text).join(""),
          bytes: wire.length + 3,
          isAtTrailers: true,
        });
      }),
    );
  });
});

describe("a chunked body is refused for", () => {
  it.each([
    ["a size that is none", "g\r\n", "invalid byte in chunk length"],
    ["no size", "\r\n", "invalid byte in chunk length"],
    ["an extension without a size", ";a=b\r\n", "invalid byte in chunk length"],
    ["a size with a sign", "+1\r\n", "invalid byte in chunk length"],
    ["a size with 0x", "0x1\r\n", "invalid byte in chunk length"],
    ["a space before the size", " 1\r\n", "invalid byte in chunk length"],
    ["digits behind white space", "1 1\r\n", "invalid byte in chunk length"],
    ["a size past 2^52", `${"0".repeat(13)}1\r\n`, "invalid byte in chunk length"],
    ["a bare LF behind a size", "1\na\r\n", "chunked line ends with bare LF"],
    ["a bare LF behind padding", "1 \na\r\n", "chunked line ends with bare LF"],
    ["a bare CR in a chunk line", "1\ra", "invalid CR in chunked line"],
    ["a bare LF in an extension", "1;a\nb\r\n", "chunked line ends with bare LF"],
    ["NUL in an extension", "1;a\0\r\n", "a control character in a chunk extension"],
    ["more than a chunk", "1\r\nab\r\n", "malformed chunked encoding"],
    ["a bare LF behind a chunk", "1\r\na\n", "malformed chunked encoding"],
    ["a bare CR behind a chunk", "1\r\na\r1\r\n", "malformed chunked encoding"],
  ])("%s, wherever it is cut", (_name, wire, message) => {
    for (const cut of everyCut(wire)) {
      expect(() => read(wire, [cut])).toThrow(
        expect.objectContaining({ name: "ProtocolError", code: "malformed-message", message }),
      );
    }
  });

  it("a line past its limit, and not for one at it; each line counts anew", () => {
    expect(read("1;abcd\r\na\r\n0;abcd\r\n", [], 8).payload).toBe("a");
    expect(() => read("1;abcde\r\n", [], 8)).toThrow("chunk line too long");
    expect(() => read(`1;${"a".repeat(7)}`, [], 8)).toThrow("chunk line too long");
  });
});
