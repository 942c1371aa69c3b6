import { afterEach, expect, it, vi } from "vitest";
import { strategyOf } from "../../../src/api/strategy/strategies.ts";
import { ManifestMemory } from "../../../src/cluster/manifest-source.ts";
import {
  joiningFiles,
  type ManifestFile,
  parseManifests,
  readingFiles,
} from "../../../src/cluster/manifests.ts";
import { FeatureGates } from "../../../src/config/feature-gates.ts";
import { atOnce } from "../../../src/lifecycle/slices.ts";

const gates = FeatureGates.defaults;

const service = (name: string, port = 80) =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { ports: [{ port: ${port} }] }\n`;
const file = (name: string, ...documents: string[]): ManifestFile => ({
  name: `${name}.yaml`,
  text: documents.join("---\n"),
});

const strategy = strategyOf("Service");
if (strategy === undefined) throw new Error("Services are a known kind");
/** Decoding ends with the defaults of the kind. */
const decoded = vi.spyOn(strategy as { withDefaults(object: unknown): unknown }, "withDefaults");
afterEach(() => decoded.mockClear());

function reload(memory: ManifestMemory, files: readonly ManifestFile[]) {
  const changed = memory.changedOf(files);
  const known = memory.knownOf(changed);
  return memory.keep(files, atOnce(readingFiles(changed, { gates, known })));
}

const objectsOf = (readings: ReturnType<typeof reload>) => atOnce(joiningFiles(readings, () => {}));

it("a reload decodes the object that changed, and no other", () => {
  const memory = new ManifestMemory();
  const a = file("a", service("one"), service("two"), service("three"));
  const b = file("b", service("four"));
  reload(memory, [a, b]);
  expect(decoded).toHaveBeenCalledTimes(4);

  decoded.mockClear();
  const changed = file(
    "a",
    "# a comment moves the lines\n",
    service("one"),
    service("two", 81),
    service("three"),
  );
  const readings = reload(memory, [changed, b]);
  expect(decoded).toHaveBeenCalledTimes(1);
  expect(objectsOf(readings)).toEqual(parseManifests([changed, b]));

  decoded.mockClear();
  expect(reload(memory, [changed, b])).toEqual(readings);
  expect(decoded).not.toHaveBeenCalled();
});

it("an object that moves within its file is at its new line", () => {
  const memory = new ManifestMemory();
  reload(memory, [file("a", service("one"), service("two"))]);
  const [reading] = reload(memory, [file("a", service("two"), service("one"))]);
  expect(reading?.found.map(({ object, line }) => [object.metadata.name, line])).toEqual([
    ["two", 1],
    ["one", 6],
  ]);
});

it("problems stay until their file changes, also those of two files together", () => {
  const memory = new ManifestMemory();
  const good = file("a", service("one"));
  const wrong = file("b", service("A_"));
  const problemsOf = (files: readonly ManifestFile[]) => {
    const readings = reload(memory, files);
    try {
      objectsOf(readings);
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };
  const first = problemsOf([good, wrong]);
  expect(first).toContain("b.yaml:3");
  expect(problemsOf([good, wrong])).toBe(first);
  expect(problemsOf([good, file("b", service("one"))])).toContain("it stands at a.yaml:1 too");
  expect(problemsOf([good, file("b", service("two"))])).toBe("");
  expect(problemsOf([file("b", service("two"))])).toBe("");
});

it("infinities, nulls and numbers that YAML tells apart are told apart", () => {
  const memory = new ManifestMemory();
  const of = (port: string) => [
    file("a", `apiVersion: v1\nkind: Service\nmetadata: { name: a }\nspec: { ports: [{ port: ${port} }] }\n`),
  ];
  for (const port of [".inf", "null", "80", '"80"']) {
    const again = reload(new ManifestMemory(), of(port));
    expect(reload(memory, of(port)), port).toEqual(again);
  }
});
