import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  foreignProtocolOf,
  isFieldCharacter,
  MalformedResponse,
  malformedLine,
  parseFieldLines,
  unfoldedSection,
} from "../../../../protocols/http1/field-lines.ts";

const strictly = (section: string, maxLines = 100): string[] => parseFieldLines(section, 0, maxLines, "none");
const malformed = (message: string) => expect.objectContaining({ code: "malformed-message", message });
const MISSING_COLON = "malformed MIME header: missing colon";

describe("field lines", () => {
  it("keep their order, case and number; values lose the white space around them", () => {
    expect(
      strictly("Set-Cookie: a=1\r\nset-cookie:\t b=2 \t\r\nX-Empty:\r\nX-Latin: \xe9\xa0\r\n\r\n"),
    ).toEqual([...["Set-Cookie", "a=1", "set-cookie", "b=2", "X-Empty", "", "X-Latin", "\xe9\xa0"]]);
    expect(strictly("A:b:c\nD: e f\n\n")).toEqual(["A", "b:c", "D", "e f"]);
  });

  it("begin at the start, and end with the empty line", () => {
    expect(parseFieldLines("HTTP/1.1 200 OK\r\nA: b\r\n\r\nC: d\r\n", 17, 1, "none")).toEqual(["A", "b"]);
    expect(strictly("\r\n")).toEqual([]);
  });

  it("are as many as allowed, and no more", () => {
    expect(strictly("A: 1\r\nB: 2\r\n\r\n", 2)).toHaveLength(4);
    expect(() => strictly("A: 1\r\nB: 2\r\nC: 3\r\n\r\n", 2)).toThrow(
      expect.objectContaining({ code: "too-many-headers" }),
    );
  });

  it.each([
    ["without a colon", "Abc", MISSING_COLON],
    ["folded", " c", MISSING_COLON],
    ["without a name", ": b", "malformed MIME header line"],
    ["with a space before the colon", "Content-Length : 2", "malformed MIME header line"],
    ["with a bare CR", "A: b\rC: d", "malformed MIME header line"],
    ["with two CRs", "A: b\r", "malformed MIME header line"],
    ["with NUL", "A: \0", "malformed MIME header line"],
    ["with an escape sequence", "A: \x1b[0m", "malformed MIME header line"],
    ["with DEL", "A: \x7f", "malformed MIME header line"],
    ["with a character of Latin-1 in its name", "\xc4: b", "malformed MIME header line"],
  ])("%s are refused", (_name, line, message) => {
    expect(() => strictly(`${line}\r\n\r\n`)).toThrow(malformed(message));
  });

  it("may have spaces in names as Go reads them, but neither tabs nor a line of spaces alone", () => {
    const asGo = (section: string): string[] => parseFieldLines(section, 0, 9, "as-go");
    expect(asGo("Content-Length : 9\r\nA B: c\r\n\r\n")).toEqual(["Content-Length ", "9", "A B", "c"]);
    expect(() => asGo("A\t: b\r\n\r\n")).toThrow(malformed("malformed MIME header line"));
    expect(() => asGo("A B\r\n\r\n")).toThrow(malformed(MISSING_COLON));
  });

  it("are read as they were written", () => {
    const name = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/);
    const value = fc.stringMatching(/^([!-~\x80-\xff]([ \t!-~\x80-\xff]{0,20}[!-~\x80-\xff])?)?$/);
    const blank = fc.stringMatching(/^[ \t]{0,3}$/);
    const fields = fc.array(fc.record({ key: name, content: value, around: blank }), { maxLength: 8 });
    fc.assert(
      fc.property(fields, fc.constantFrom("\r\n", "\n"), (lines, end) => {
        const text = lines.map(({ key, content, around }) => `${key}:${around}${content}${around}${end}`);
        const expected = lines.flatMap(({ key, content }) => [key, content]);
        for (const leniency of ["none", "as-go"] as const) {
          expect(parseFieldLines(`${text.join("")}${end}`, 0, 8, leniency)).toEqual(expected);
        }
      }),
    );
  });
});

describe("isFieldCharacter", () => {
  it("takes tab and everything but controls, one byte wide", () => {
    const taken = Array.from({ length: 300 }, (_, code) => code).filter(isFieldCharacter);
    const expected = [
      0x09,
      ...Array.from({ length: 224 }, (_, at) => at + 0x20).filter((code) => code !== 0x7f),
    ];
    expect(taken).toEqual(expected);
  });
});

describe("unfoldedSection", () => {
  it.each([
    ["A: b\r\n c\r\n\r\n", "A: b c\n\n"],
    ["A:\r\n\t b \r\n \n  c\r\nD: e\r\n\r\n", "A: b  c\nD: e\n\n"],
  ])("%j is joined with one space a line", (section, unfolded) => {
    expect(unfoldedSection(section, 0)).toBe(unfolded);
  });

  it("leaves what is before the start, and a section without folds, as they are", () => {
    const start = "HTTP/1.1 200 OK\r\n";
    expect(unfoldedSection(`${start}A: b\r\n c\r\n\r\n`, start.length)).toBe(`${start}A: b c\n\n`);
    expect(unfoldedSection("A: b \r\n\r\n", 0)).toBe("A: b \r\n\r\n");
  });

  it.each([" a: b\r\n\r\n", "\tc\n\n"])("refuses %j, whose first line is folded", (section) => {
    expect(() => unfoldedSection(section, 0)).toThrow(malformed("malformed MIME header initial line"));
  });
});

const quote = (text: string): string => JSON.stringify(text);

describe("foreignProtocolOf", () => {
  it.each([
    ["HTTP/2", "\0\0\x12\x04\0\0\0\0\0\0\x03", 9],
    ["TLS", "\x15\x03\x01\0\x02\x02\x46", 5],
    ["TLS", "\x15\x03\x03\0\x02\x02\x28", 5],
  ])("recognizes %s by its first message, once enough of it is there", (protocol, text, bytes) => {
    for (let length = 0; length <= text.length; length += 1) {
      expect(foreignProtocolOf(text.slice(0, length))).toBe(length < bytes ? undefined : protocol);
    }
  });

  it.each([
    "HTTP/1.1 200 OK",
    "SSH-2.0-OpenSSH_9.6",
    "\0\0\0\x04\x01\0\0\0\0",
    "\0\0\x12\x04\0\0\0\0\x01",
    "\x16\x03\x03\0\x02\x02\x28",
    "\x15\x03\x03\0\x1a\0\0",
  ])("does not take %j for either", (text) => {
    expect(foreignProtocolOf(text)).toBeUndefined();
  });
});

describe("MalformedResponse", () => {
  it("has nothing of the peer in its message, and all of it where it is quoted", () => {
    const error = new MalformedResponse("malformed HTTP response", "SSH-2.0");
    expect(error).toMatchObject({ code: "malformed-message", message: "malformed HTTP response" });
    expect(error.isOfFieldLine).toBe(false);
    expect(error.quoting(quote)).toBe('malformed HTTP response "SSH-2.0"');
  });

  it("quotes several texts as Go prints a list, and none where there is none", () => {
    expect(new MalformedResponse("two lengths", ["1", "2"], "; got ").quoting(quote)).toBe(
      'two lengths; got ["1" "2"]',
    );
    expect(new MalformedResponse("both").quoting(quote)).toBe("both");
    expect(new MalformedResponse("empty", "").quoting(quote)).toBe('empty ""');
  });

  it("names the protocol of a single text", () => {
    const alert = "\x15\x03\x03\0\x02\x02\x28";
    expect(new MalformedResponse("malformed", alert).foreignProtocol).toBe("TLS");
    expect(new MalformedResponse("malformed", [alert]).foreignProtocol).toBeUndefined();
  });
});

describe("malformedLine", () => {
  it.each([
    ["Authorization", 'malformed MIME header: missing colon: "Authorization"'],
    ["A B: c", 'malformed MIME header line: "A B: c"'],
  ])("%j may be a credential", (line, text) => {
    const error = malformedLine(line);
    expect(error.isOfFieldLine).toBe(true);
    expect(error.message).not.toContain(line);
    expect(error.quoting(quote)).toBe(text);
  });
});
