import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { plainYaml } from "../../../packages/client/src/config/plain-yaml.ts";
import { parseYamlDocuments } from "../../../packages/client/src/config/yaml-documents.ts";
import type { FieldPath } from "../../../packages/client/src/config/yaml-field-places.ts";

/** As kubectl writes it, with what other tools add. */
const KUBECONFIG = `# written by hand
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
    extensions:
    - extension:
        last-update: Tue, 10 Sep 2024 10:00:00 UTC
        provider: minikube.sigs.k8s.io
      name: cluster_info
    server: https://[::1]:6443/base
  name: kind-a
contexts:
  - context:
      cluster: kind-a
      namespace: ""
      user: "arn:aws:eks:eu-west-1:1234:cluster/a"
    name: kind-a
  - context: { cluster: kind-a, user: arn/b.c-d_e@f }
    name: b
  - {name: c}

current-context: kind-a
kind: Config
preferences: {}
users:
-   name: 'arn:aws:eks:eu-west-1:1234:cluster/a'
    user:
        exec:
            apiVersion: client.authentication.k8s.io/v1
            args:
            - --region
            - eu-west-1
            -   get-token
            command: aws
            env: null
            interactiveMode: IfAvailable
            provideClusterInfo: false
`;

function* pathsIn(value: unknown, path: FieldPath = []): Generator<FieldPath> {
  yield path;
  if (typeof value !== "object" || value === null) return;
  for (const key of Array.isArray(value) ? value.keys() : Object.keys(value))
    yield* pathsIn((value as Record<string | number, unknown>)[key], [...path, key]);
}

/** Reads a text by both readers. False if it is not plain. */
function isReadAlike(text: string): boolean {
  const plain = plainYaml(text);
  if (plain === undefined) return false;
  const [document] = parseYamlDocuments(text, "f");
  expect(plain.value, text).toEqual(document?.value);
  for (const path of [...pathsIn(plain.value), ["none"], ["users", 7, "name"], ["a", "a", 0]])
    expect(plain.placeOf(path), `${path} in ${text}`).toEqual(document?.placeOf(path));
  return true;
}

const word = fc.constantFrom(
  ...["a", "b: c", "a:", "x:y", "a #b", "a#b", "#a", "~", "null", "Null", "true", "TRUE", "yes", "12", "1e3"],
  ...[
    "0x1f",
    "0o7",
    "1_0",
    "1.2.3",
    "-1",
    "-a",
    "--",
    "- a",
    "-",
    "---",
    "...",
    "{}",
    "[]",
    "{a: b}",
    "{ a: b, c: d }",
    "[a]",
  ],
  ...[
    '"a b"',
    '"\\n"',
    '""',
    "'it''s'",
    "'a'",
    '"a" b',
    "|",
    ">-",
    "&x a",
    "*x",
    "!!str 1",
    "? a",
    "@a",
    "a b",
  ],
  ...[
    "%a",
    "`a",
    ",a",
    "a, b",
    "a: ",
    "Infinity",
    "0b11",
    "1:30",
    "2024-01-01",
    ".5",
    "+1",
    "=",
    "<<",
    "a]",
    "\t",
  ],
);
const key = fc.constantFrom(
  "a: ",
  "b: ",
  "c:",
  "users:",
  "null: ",
  "<<: ",
  "1: ",
  "",
  "a:b",
  "x.y/z-1:   ",
  "__proto__: ",
);
const line = fc
  .tuple(
    fc.constantFrom("", "", " ", "  ", "  ", "    ", "\t"),
    fc.constantFrom("", "", "- ", "-   ", "- - ", "#"),
    key,
    fc.option(word),
  )
  .map(([indent, item, name, value]) => `${indent}${item}${name}${value ?? ""}`);

describe("plain YAML", () => {
  it("of a kubeconfig is read as the YAML library reads it, with the same places", () => {
    expect(isReadAlike(KUBECONFIG)).toBe(true);
    expect(isReadAlike(`---\n${KUBECONFIG.trimEnd()}`)).toBe(true);
    expect(isReadAlike(KUBECONFIG.replaceAll(/^(?=.)/gm, "  "))).toBe(true);
  });

  it("is read as the YAML library reads it, or left to it", () => {
    let plain = 0;
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 6 }), (lines) => {
        if (isReadAlike(lines.join("\n"))) plain += 1;
      }),
      { numRuns: 20_000 },
    );
    expect(plain).toBeGreaterThan(200);
  });

  it.each([
    ["Windows' line ends", "a: b\r\n"],
    ["a tab", "a:\tb"],
    ["another alphabet", "a: é"],
    ["equal keys", "a: b\na: c"],
    ["a merge key", "<<: a"],
    ["a word in two lines", "a: b\n  c"],
    ["a word below its key", "a:\n  b"],
    ["a number", "a: 12"],
    ["a second document", "a: b\n---\na: c"],
    ["a list at its root", "- a"],
    ["a comment behind a word", "a: b # c"],
    ["too many levels", Array.from({ length: 30 }, (_, level) => `${" ".repeat(level)}a:`).join("\n")],
    ["nothing", "\n# none\n"],
  ])("has not %s", (_what, text) => {
    expect(plainYaml(text)).toBeUndefined();
  });

  it("is read in a time that grows as the text does", () => {
    const many = (count: number) => `a:\n${"- a: b\n  c: d\n".repeat(count)}`;
    expect(Object.values(plainYaml(many(20_000))?.value ?? {})[0]).toHaveLength(20_000);
  });
});
