import { describe, expect, it } from "vitest";
import type { HeaderEntry } from "../../../../protocols/http2/hpack/dynamic-table.ts";
import { checkFields, fieldOf, readResponseHead } from "../../../../protocols/http2/response-fields.ts";

const refused = (message: string) => expect.objectContaining({ fault: "stream", code: 1, message });

describe("a response's head", () => {
  it("is its status and its fields, in order", () => {
    const fields: HeaderEntry[] = [
      ["b", "1"],
      ["a", ""],
      ["b", "\u00e9\t2"],
    ];
    expect(readResponseHead([[":status", "204"], ...fields])).toEqual({ status: 204, fields });
    expect(readResponseHead(fields)).toEqual({ status: undefined, fields });
    expect(readResponseHead([[":status", ""]])).toEqual({ status: undefined, fields: [] });
    expect(readResponseHead([])).toEqual({ status: undefined, fields: [] });
  });

  const NO_NUMBER = "malformed response from server: malformed non-numeric status pseudo header";
  it.each<[string, HeaderEntry[], string]>([
    ["a status that is no number", [[":status", "2x0"]], NO_NUMBER],
    ["a status of two digits", [[":status", "20"]], NO_NUMBER],
    ["a status of four digits", [[":status", "2000"]], NO_NUMBER],
    ["a status with a sign", [[":status", "+20"]], NO_NUMBER],
    [
      "two statuses",
      [
        [":status", "200"],
        [":status", "200"],
      ],
      'duplicate pseudo-header ":status"',
    ],
    ["an unknown pseudo-header", [[":path", "/"]], 'invalid pseudo-header ":path"'],
    [
      "a status behind a field",
      [
        ["a", "b"],
        [":status", "200"],
      ],
      "pseudo header field after regular",
    ],
    [
      "a field that is none",
      [
        [":status", "200"],
        ["A", "b"],
      ],
      "invalid header field name",
    ],
  ])("is refused for %s", (_name, entries, message) => {
    expect(() => readResponseHead(entries)).toThrow(refused(message));
  });
});

describe("fields", () => {
  it("have names in lower case, of token characters alone", () => {
    checkFields([["!#$%&'*+-.^_`|~09az", "v"]]);
    for (let code = 0; code < 256; code += 1) {
      const character = String.fromCharCode(code);
      if (/[!#$%&'*+\-.^_`|~0-9a-z]/.test(character)) continue;
      expect(() => checkFields([[`a${character}b`, "v"]])).toThrow(refused("invalid header field name"));
    }
    expect(() => checkFields([["", "v"]])).toThrow(refused("invalid header field name"));
  });

  it("have values without controls, tab apart; the error names the field and not the value", () => {
    for (let code = 0; code < 256; code += 1) {
      const act = () => checkFields([["n", `a${String.fromCharCode(code)}b`]]);
      if ((code >= 0x20 && code !== 0x7f) || code === 9) act();
      else expect(act).toThrow(refused('invalid header field value for "n"'));
    }
  });

  it("are found by their name: the first", () => {
    const fields: HeaderEntry[] = [
      ["a", "1"],
      ["b", "2"],
      ["b", "3"],
    ];
    expect([fieldOf(fields, "b"), fieldOf(fields, "c")]).toEqual(["2", undefined]);
  });
});
