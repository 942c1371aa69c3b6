import { createRequire } from "node:module";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ConfigurationProblem } from "../../../packages/client/src/config/configuration-error.ts";
import { type Field, placedFields, type Table } from "../../../packages/client/src/config/field.ts";
import { Section } from "../../../packages/client/src/config/section.ts";
import { EMPTY_DOCUMENT } from "../../../packages/client/src/config/yaml-documents.ts";
import { configurationSchema, gatewayConfiguration } from "../../../src/config/configuration.ts";

interface Validator {
  compile(schema: object): (value: unknown) => boolean;
}
const { Ajv } = createRequire(import.meta.url)("ajv") as { Ajv: new (options: object) => Validator };

const schemaAccepts = new Ajv({ allErrors: false, strict: true, allowUnionTypes: true }).compile(
  configurationSchema(),
);

/** The problems of the reader; none where it accepts. */
function problemsOf(value: unknown): readonly ConfigurationProblem[] {
  const problems: ConfigurationProblem[] = [];
  gatewayConfiguration.read(new Section({ fileName: "f", document: EMPTY_DOCUMENT, problems }, [], value));
  return problems;
}

/** Values of every kind, right for some field and wrong for others. */
const anyValue = fc.oneof(
  fc.constantFrom(
    null,
    true,
    false,
    0,
    1,
    -1,
    1.5,
    8080,
    70_000,
    2 ** 41,
    "",
    "auto",
    "batch",
    "deny",
    "RBAC",
  ),
  fc.constantFrom(
    "30s",
    "4h0m0s",
    "-1s",
    "5",
    "1.5Mi",
    "10k",
    "1e3Ki",
    "64KB",
    "https://a.test",
    "127.0.0.1",
    "::1",
  ),
  fc.constantFrom([], [null], [""], ["a"], ["InternalIP"], [1], [80, "9000-9100"], {}, { a: "b" }, { a: 1 }),
  fc.jsonValue({ maxDepth: 2 }),
);

/** For fields that are required, or have no default. */
const EXAMPLES: Readonly<Record<string, unknown>> = {
  ...{ url: "https://a.test", issuerURL: "https://a.test", audiences: ["a"], nodes: ["a"], path: "-" },
  ...{ clientCAFile: "a", certFile: "a", keyFile: "a", nodeName: "a", name: "a", action: "deny" },
};

type Values = Record<string, unknown>;

/** Puts a value at the path; sections on the way, or the first item of a list of them, get what they require. */
function put(
  section: Values,
  { fields }: Table,
  [name = "", ...rest]: readonly string[],
  value: unknown,
): void {
  for (const [required, field] of Object.entries(fields))
    if (field.isRequired && field.table === undefined) section[required] ??= EXAMPLES[required];
  const { table, type } = fields[name] as Field;
  if (table === undefined || rest.length === 0) {
    section[name] = value;
    return;
  }
  const below: Values = {};
  put(below, table, rest, value);
  section[name] = type === "list of sections" ? [below] : below;
}

const HEADER = { apiVersion: "sluice.dev/v1alpha1", kind: "GatewayConfiguration" };

/** One field, of any depth, with its default, an example or any value; at times an unknown one beside it. */
const configurations = fc
  .constantFrom(...placedFields(gatewayConfiguration))
  .chain(({ path, field }) => {
    const right = field.default ?? EXAMPLES[path.at(-1) ?? ""] ?? "a";
    const value = fc.oneof(fc.constant(right), anyValue, anyValue);
    const isUnknown = fc.integer({ min: 0, max: 20 }).map((number) => number === 0);
    return fc.tuple(fc.constant(path), value, isUnknown);
  })
  .map(([path, value, isUnknown]) => {
    const file: Values = { ...HEADER };
    put(file, gatewayConfiguration, path, value);
    return isUnknown ? { ...file, idleMs: 1 } : file;
  });

describe("the JSON Schema of a configuration", () => {
  it("accepts whatever the reader accepts", () => {
    let [accepted, refused] = [0, 0];
    fc.assert(
      fc.property(configurations, (value) => {
        const isRight = problemsOf(value).length === 0;
        if (isRight) expect(schemaAccepts(value)).toBe(true);
        if (isRight) accepted += 1;
        else refused += 1;
      }),
      { numRuns: 3_000 },
    );
    expect(Math.min(accepted, refused)).toBeGreaterThan(300);
  });

  // Types, names, choices and ranges of plain numbers: what JSON Schema can express.
  const EXPRESSIBLE =
    /^(?:unknown field|must be (?:a map|a list|a string|true or false)\b.*, got|must be (?:a|an) .*, got (?:a list|a map|the boolean)|must be between .*, got the number|must be a duration with its unit|".*" is not supported|must not be empty$|must name at least one)/;

  it("refuses what the reader refuses, where it can be expressed", () => {
    let refused = 0;
    fc.assert(
      fc.property(configurations, (value) => {
        const expressible = problemsOf(value).filter(({ message }) => EXPRESSIBLE.test(message));
        if (expressible.length === 0) return;
        refused += 1;
        expect(schemaAccepts(value), JSON.stringify(expressible)).toBe(false);
      }),
      { numRuns: 3_000 },
    );
    expect(refused).toBeGreaterThan(300);
  });

  it("describes every field in a sentence", () => {
    for (const { path, field } of placedFields(gatewayConfiguration))
      expect(field.sentence, path.join(".")).toMatch(/^[A-Z\d`/].*\.$/s);
  });

  it("has the version and kind that are required", () => {
    expect(schemaAccepts(HEADER)).toBe(true);
    expect(schemaAccepts({ ...HEADER, kind: "Pod" })).toBe(false);
    expect(schemaAccepts({ kind: HEADER.kind })).toBe(false);
  });
});
