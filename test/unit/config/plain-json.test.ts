import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { plainJson } from "../../../packages/client/src/config/plain-json.ts";
import { parseYamlDocuments } from "../../../packages/client/src/config/yaml-documents.ts";
import type { FieldPath } from "../../../packages/client/src/config/yaml-field-places.ts";

const DEPTH = 98;

/** The same text as YAML's parser reads it: behind JSON a comment is none. */
const byYaml = (text: string) => parseYamlDocuments(`${text}\n# end`, "f", { isManifest: true })[0];

function* pathsIn(value: unknown, path: FieldPath = []): Generator<FieldPath> {
  yield path;
  if (typeof value !== "object" || value === null) return;
  for (const key of Array.isArray(value) ? value.keys() : Object.keys(value))
    yield* pathsIn((value as Record<string | number, unknown>)[key], [...path, key]);
}

const leaf = fc.oneof(
  fc.integer({ min: -99_999, max: 99_999 }),
  fc.boolean(),
  fc.constant(null),
  fc.string({ unit: fc.constantFrom(...'ab"\\:{}[],0-9 \n\té😀') }),
);
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof({ maxDepth: 4 }, leaf, fc.array(tie("tree"), { maxLength: 3 }), tie("object")),
  object: fc.dictionary(fc.constantFrom("a", "items", 'q"', "b:", "kind"), tie("tree"), { maxKeys: 4 }),
}));
const root = fc.dictionary(fc.constantFrom("items", "kind", "x"), tree, { minKeys: 1 });

describe("a JSON object", () => {
  it("is read as YAML's parser reads it, with the same places", () => {
    fc.assert(
      fc.property(root, fc.constantFrom(0, 2, "\t"), (value, indent) => {
        const text = `\n ${JSON.stringify(value, undefined, indent)}`;
        expect(plainJson(text, DEPTH)?.value).toEqual(value);
        const [read] = parseYamlDocuments(text, "f", { isManifest: true });
        const other = byYaml(text.replaceAll("\t", " "));
        expect(read?.value).toEqual(other?.value);
        for (const path of [...pathsIn(value), ["none"], ["items", 99]])
          expect(read?.placeOf(path)).toEqual(other?.placeOf(path));
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ["equal keys", '{"a":1,"b":{"c":1,"c":2}}'],
    ["equal keys by escapes", '{"a":1,"\\u0061":2}'],
    ["a merge key", '{"<<":{"a":1}}'],
    ["a prototype", '{"__proto__":{"a":1}}'],
    ["a zero with a sign", '{"a":-0}'],
    ["a fraction", '{"a":1.5}'],
    ["an exponent", '{"a":[1e3]}'],
    ["a large integer", '{"a":1234567890123456}'],
    ["a negative large integer", '{"a":-1234567890123456}'],
    ["another document behind it", '{"a":1}{"a":2}'],
    ["YAML's flow style", "{a: 1}"],
    ["a comment", '{"a":1} # one'],
    ["a byte order mark", '\ufeff{"a":1}'],
    ["a list", "[1]"],
    ["a text", '"a"'],
    ["nothing", ""],
    ["too many levels", `${'{"a":'.repeat(DEPTH)}{}${"}".repeat(DEPTH)}`],
  ])("is not plain with %s", (_what, text) => {
    expect(plainJson(text, DEPTH)).toBeUndefined();
  });

  it.each([
    '{"a":-1,"b":0}',
    '{"a":"\\\\","b":"\\\\\\""}',
    '{"a":123456789012345}',
  ])("is plain: %s", (text) => {
    expect(plainJson(text, DEPTH)?.value).toEqual(JSON.parse(text));
  });

  it("still names the line of equal keys, and of a field that is wrong", () => {
    expect(() => parseYamlDocuments('{\n"a":1,\n"a":2\n}', "f")).toThrow(/unique/);
    const [document] = parseYamlDocuments('{"kind":"List",\n"items":[\n{"a":1},\n {"b":\n[1]}]}', "f");
    expect(document?.placeOf(["items", 1])).toEqual({ line: 4, column: 2 });
    expect(document?.placeOf(["items", 1, "b", 0])).toEqual({ line: 5, column: 2 });
  });
});
