import { describe, expect, it } from "vitest";
import { parseYamlDocuments } from "../../../packages/client/src/config/yaml-documents.ts";
import { MANIFEST_KEYS, MANIFEST_WORDS, manifestOf } from "../../support/manifest-words.ts";

const asManifest = (text: string) => parseYamlDocuments(text, "m.yaml", { isManifest: true })[0]?.value;

describe("words of a manifest", () => {
  it.each(MANIFEST_WORDS)("%s is %o, as to kubectl", (word, value) => {
    expect(asManifest(`a: ${word}`)).toEqual({ a: value === 0 ? expect.closeTo(0) : value });
  });

  it.each(MANIFEST_KEYS)("the key %s is %s", (key, text) => {
    expect(asManifest(`${key}: 1`)).toEqual({ [text]: 1 });
  });

  it("are strings in blocks, and null where nothing stands", () => {
    expect(asManifest("a: |-\n  0120\nb: >-\n  yes\nc:\nd: [on, ]\n")).toEqual({
      a: "0120",
      b: "yes",
      c: null,
      d: [true],
    });
  });

  it("follow anchors and merge keys", () => {
    const text = manifestOf(["&a { port: 0120 }", "*a", "{ <<: *a, name: x }"], ["k"]);
    expect(asManifest(text)).toMatchObject({ values: [{ port: 80 }, { port: 80 }, { port: 80, name: "x" }] });
  });

  it("with a tag that they do not fit are refused with their line", () => {
    expect(() => asManifest("a: 1\nb: !!int yes\n")).toThrow(/m\.yaml:2:\d+: cannot decode "yes" as a !!int/);
  });

  it("stay YAML 1.2 in a configuration", () => {
    expect(parseYamlDocuments("a: 0120\nb: yes\nc: 1_0\n", "g.yaml")[0]?.value).toEqual({
      a: 120,
      b: "yes",
      c: "1_0",
    });
  });
});
