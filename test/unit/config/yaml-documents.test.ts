import { describe, expect, it } from "vitest";
import { ConfigurationError } from "../../../packages/client/src/config/configuration-error.ts";
import { parseYamlDocuments } from "../../../packages/client/src/config/yaml-documents.ts";

// The bounds under test.
const MAX_YAML_CHARACTERS = 16 * 1024 * 1024;
const MAX_CONFIGURATION_CHARACTERS = 1024 * 1024;

describe("parseYamlDocuments", () => {
  it("reads several documents and leaves empty ones out", () => {
    const documents = parseYamlDocuments("# nothing\n---\n---\na: 1\n---\nb: [x]\n---\n", "f.yaml");
    expect(documents.map((document) => document.value)).toEqual([{ a: 1 }, { b: ["x"] }]);
    expect(parseYamlDocuments("", "f.yaml")).toEqual([]);
  });

  it("knows the line of a field, or of the nearest field around it", () => {
    const [, second] = parseYamlDocuments(
      "a: 1\n---\nlisteners:\n  admin:\n    port: 1\n  list:\n  - x\n  - y: 2\n",
      "f.yaml",
    );
    expect(second?.lineOf(["listeners", "admin", "port"])).toBe(5);
    expect(second?.lineOf(["listeners", "admin", "address"])).toBe(4);
    expect(second?.lineOf(["listeners", "list", 1, "y"])).toBe(8);
    expect(second?.lineOf(["listeners", "list", 9])).toBe(6);
    expect(second?.lineOf([])).toBe(3);
    expect(second?.lineOf(["nothing", "here"])).toBe(3);
  });

  it("follows aliases and merges", () => {
    const [document] = parseYamlDocuments(
      "base: &base {a: [1, 2]}\nx: *base\ny:\n  <<: *base\n  b: 3\n",
      "f.yaml",
    );
    expect(document?.value).toEqual({ base: { a: [1, 2] }, x: { a: [1, 2] }, y: { a: [1, 2], b: 3 } });
    expect(document?.lineOf(["x", "a", 0])).toBe(1);
  });

  it("keeps __proto__ a plain key", () => {
    const value = parseYamlDocuments("__proto__: {polluted: true}\n", "f.yaml")[0]?.value as object;
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect("polluted" in value).toBe(false);
  });

  const bomb = ["a: &a [x,x,x,x,x,x,x,x,x,x]"];
  for (const [name, before] of ["ba", "cb", "dc", "ed", "fe", "gf"].map((pair) => [pair[0], pair[1]])) {
    bomb.push(`${name}: &${name} [${Array(10).fill(`*${before}`).join(",")}]`);
  }
  const refused: { name: string; text: string; isManifest?: boolean; problems: string[] }[] = [
    {
      name: "every duplicate key of a document, and nothing behind it",
      text: "a: 1\na: 2\nb: 1\nb: 2\n---\nb: {\n",
      problems: ["f.yaml:2:1: Map keys must be unique", "f.yaml:4:1: Map keys must be unique"],
    },
    {
      name: "the first of many syntax errors, with its line",
      text: "a: 1\n b: [1\nc: d: e\n- x\n\u001b[2J: {\n",
      problems: ['f.yaml:1:4: Nested mappings are not allowed in compact mappings: "a: 1"'],
    },
    {
      name: "a broken line that holds a secret, without it",
      text: "users:\n  token: abc: def\n",
      problems: ['f.yaml:2:10: Nested mappings are not allowed in compact mappings: "token: …"'],
    },
    {
      name: "a broken line of a long secret, without it",
      text: `a: |-\n  x\n${"c2VjcmV0".repeat(9)}\n`,
      problems: ['f.yaml:3:1: Implicit map keys need to be followed by map values: "…"'],
    },
    {
      name: "a tag that nobody resolves",
      text: "a: !secret x\n",
      problems: ["f.yaml:1:4: Unresolved tag: !secret"],
    },
    {
      name: "a map as a key",
      text: "? {a: 1}\n: 2\n",
      problems: ["f.yaml:1:3: a map key must be a plain value"],
    },
    {
      name: "an alias without an anchor",
      text: "a: 1\nb: *nope\n",
      problems: ["f.yaml:2:4: no anchor &nope stands before this alias"],
    },
    {
      name: "an alias inside itself",
      text: "a: &x\n  b: *x\n",
      problems: ["f.yaml:2:6: the alias *x stands inside its own anchor"],
    },
    {
      name: "an alias bomb",
      text: bomb.join("\n"),
      problems: ["f.yaml:1:1: Excessive alias count indicates a resource exhaustion attack"],
    },
    {
      name: "more aliases than are looked up",
      text: `a: &a 1\nb: [${"*a, ".repeat(1_001)}]\n`,
      problems: ["f.yaml:1:1: more than 1000 aliases"],
    },
    {
      name: "merges of a large map",
      text: `a: &a {${Array.from({ length: 1_001 }, (_, index) => `k${index}: 1`).join(", ")}}\nb: [${"{<<: *a}, ".repeat(100)}]\n`,
      problems: ["f.yaml:1:1: its merge keys copy more than 100000 entries"],
    },
    {
      name: "merges of merges, twice as many each",
      text: `a0: &a0 {k: 1}\n${Array.from({ length: 40 }, (_, index) => `a${index + 1}: &a${index + 1} {<<: [*a${index}, *a${index}]}`).join("\n")}\n`,
      problems: ["f.yaml:1:1: its merge keys copy more than 100000 entries"],
    },
    {
      name: "a long chain of merges",
      text: `a0: &a0 {k: 1}\n${Array.from({ length: 900 }, (_, index) => `a${index + 1}: &a${index + 1} {<<: *a${index}, k${index}: 1}`).join("\n")}\n`,
      problems: ["f.yaml:1:1: its merge keys copy more than 100000 entries"],
    },
    {
      name: "100,000 brackets",
      text: "[".repeat(100_000),
      problems: ["f.yaml:1:101: nested more than 100 levels deep"],
    },
    {
      name: "5,000 nested lists",
      text: "- ".repeat(5_000),
      problems: ["f.yaml:1:201: nested more than 100 levels deep"],
    },
    { name: "tabs", text: "\ta: 1", problems: ['f.yaml:1:1: Tabs are not allowed as indentation: "a: 1"'] },
    {
      name: "a program",
      text: "\u007fELF\u0002\u0001\u0001\u0000\u0000: [",
      problems: ["f.yaml: the file is not text: it has NUL bytes"],
    },
    {
      name: "a file past the bound",
      text: " ".repeat(MAX_YAML_CHARACTERS + 1),
      isManifest: true,
      problems: ["f.yaml: the file has 16777217 characters, at most 16777216 are read"],
    },
    {
      name: "a configuration past its bound",
      text: " ".repeat(MAX_CONFIGURATION_CHARACTERS + 1),
      problems: ["f.yaml: the file has 1048577 characters, at most 1048576 are read"],
    },
  ];
  it.each(refused)("refuses $name", ({ text, isManifest = false, problems }) => {
    expect(messageOf(() => parseYamlDocuments(text, "f.yaml", { isManifest }))).toBe(problems.join("\n"));
  });

  it.each([
    "}",
    "]",
    "a: }\n",
    "[}]\n",
    "*\n",
  ])("refuses a file of nothing but %j at its first one", (text) => {
    const startedMs = performance.now();
    const file = text.repeat(1_000_000 / text.length);
    expect(messageOf(() => parseYamlDocuments(file, "f.yaml"))).toMatch(/^f\.yaml:1:\d: [^\n]+$/);
    // A problem for each of them would take half a minute.
    expect(performance.now() - startedMs).toBeLessThan(3_000);
  });
});

function messageOf(action: () => unknown): string {
  try {
    action();
  } catch (reason) {
    return reason instanceof ConfigurationError ? reason.message : `another kind of error: ${String(reason)}`;
  }
  return "nothing was thrown";
}
