import fc from "fast-check";
import { afterEach, expect, it, vi } from "vitest";
import { strategyOf } from "../../../src/api/strategy/strategies.ts";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { ManifestMemory } from "../../../src/cluster/manifest-memory.ts";
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
  const read = ({ changed, known }: Parameters<ManifestMemory["whole"]>[0]) =>
    atOnce(readingFiles(changed, { gates, known }));
  const first = atOnce(memory.comparing(files));
  const readings = read(first);
  const again = memory.whole(first, readings);
  return atOnce(memory.keeping(again ?? first, again === undefined ? readings : read(again)));
}

const objectsOf = (readings: ReturnType<typeof reload>) => atOnce(joiningFiles(readings, () => {}));

/** The most lookups and insertions in Maps and Sets that one step of the work makes. */
function most<Result>(work: Generator<void, Result>): { readonly result: Result; readonly most: number } {
  let [count, largest] = [0, 0];
  const counted = [Map.prototype, Set.prototype].flatMap((prototype) =>
    ["get", "has", "set", "add"].flatMap((name) => {
      const own = Object.getOwnPropertyDescriptor(prototype, name);
      return own === undefined ? [] : [{ prototype, name, own }];
    }),
  );
  for (const { prototype, name, own } of counted) {
    const counting = function (this: unknown, ...given: unknown[]): unknown {
      count += 1;
      return Reflect.apply(own.value, this, given);
    };
    Object.defineProperty(prototype, name, { ...own, value: counting });
  }
  try {
    for (;;) {
      count = 0;
      const step = work.next();
      largest = Math.max(largest, count);
      if (step.done === true) return { result: step.value, most: largest };
    }
  } finally {
    for (const { prototype, name, own } of counted) Object.defineProperty(prototype, name, own);
  }
}

it("a reload of one changed document among many has no long step", () => {
  const [memory, store] = [new ManifestMemory(), new ClusterStore()];
  const documents = Array.from({ length: 1_000 }, (_, index) => service(`service-${index}`));
  const now = new Date();
  atOnce(store.replacingAll(objectsOf(reload(memory, [file("a", ...documents)])), now));

  const changed = [file("a", ...documents.with(500, service("service-500", 81)))];
  const compared = most(memory.comparing(changed));
  const read = most(readingFiles(compared.result.changed, { gates, known: compared.result.known }));
  const kept = most(memory.keeping(compared.result, read.result));
  const joined = most(joiningFiles(kept.result, () => {}));
  const stored = most(store.replacingAll(joined.result, now));
  expect(stored.result).toBe(1);
  for (const step of [compared, kept, joined, stored]) expect(step.most).toBeLessThan(30);
});

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

it("a reload parses the documents that changed, and no other", () => {
  const memory = new ManifestMemory();
  reload(memory, [file("a", service("one"), service("two"), service("three"))]);
  const now = [file("a", service("one"), service("two", 81), service("three"))];
  const { changed } = atOnce(memory.comparing(now));
  expect(changed).toEqual([{ name: "a.yaml", text: `---\n${service("two", 81)}` }]);
});

it("a directive holds for all of its file", () => {
  const memory = new ManifestMemory();
  const of = (port: number) => [file("a", `%YAML 1.2\n`, service("one"), service("two", port))];
  reload(memory, of(80));
  expect(atOnce(memory.comparing(of(81))).changed).toEqual(of(81));
});

it("what is wrong with an edit is told with the line of the whole file, and mended without decoding the rest", () => {
  const memory = new ManifestMemory();
  const of = (third: string) => [file("a", service("one"), service("two"), third)];
  reload(memory, of(service("three")));
  const wrong = service("three").replace("port: 80", 'port: "80');
  const problems = reload(new ManifestMemory(), of(wrong))[0]?.problems;
  expect(problems).toMatchObject([{ line: 15 }]);
  decoded.mockClear();
  expect(reload(memory, of(wrong))[0]?.problems).toEqual(problems);
  expect(reload(memory, of(service("four")))).toEqual(reload(new ManifestMemory(), of(service("four"))));
});

/** Values that hold what looks like the start of a document, at every place where YAML may take it for one. */
const VALUE = fc.constantFrom(
  "plain",
  "|\n      text\n      ---\n      more",
  "|\n      text\n---\n      more",
  '"two\n      --- lines"',
  '"two\n--- lines"',
  "'one\n\n---'",
  "one # --- no comment",
  "[\n---\n]",
  "---",
  ">-\n      folded\n...",
);
const DOCUMENT = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(fc.integer({ min: 1, max: 6 }), VALUE)
      .map(([index, value]) => annotated(`s${index}`, value)),
  },
  fc.constantFrom(
    "# only a comment\n",
    "",
    "...\n",
    "apiVersion: other.dev/v1\nkind: Thing\nmetadata: { name: a }\n",
    "apiVersion: v1\nkind: List\nitems:\n- { apiVersion: v1, kind: Service, metadata: { name: l1 }, spec: { ports: [{ port: 1 }] } }\n- { apiVersion: v1, kind: Service, metadata: { name: l2 }, spec: { ports: [{ port: 1 }] } }\n",
    '{"apiVersion":"v1","kind":"Service","metadata":{"name":"j"},"spec":{"ports":[{"port":1}]}}',
  ),
);
const SEPARATOR = fc.constantFrom(
  "---\n",
  "--- # again\n",
  "---\t\n",
  "---\r\n",
  "...\n---\n",
  "\n---\n",
  "--- ",
);
const TEXT = fc.array(fc.tuple(DOCUMENT, SEPARATOR), { minLength: 1, maxLength: 6 });
const annotated = (name: string, value: string) =>
  `apiVersion: v1\nkind: Service\nmetadata:\n  name: ${name}\n  annotations:\n    a: ${value}\nspec: { ports: [{ port: 80 }] }\n`;
const textOf = (pieces: readonly (readonly [string, string])[]) =>
  pieces.map(([document, separator], index) => (index === 0 ? document : separator + document)).join("");

it("after any edit, a file is read to what it is read to for the first time", () => {
  fc.assert(
    fc.property(fc.array(TEXT, { minLength: 2, maxLength: 2 }), fc.nat(), (texts, at) => {
      const [one = [], other = []] = texts;
      const memory = new ManifestMemory();
      const edited = one.with(at % one.length, other[0] ?? ["", "---\n"]);
      for (const pieces of [one, edited, [...edited, ...other], one.toReversed()]) {
        const now = [{ name: "a.yaml", text: textOf(pieces) }];
        expect(reload(memory, now)).toEqual(reload(new ManifestMemory(), now));
      }
    }),
    { numRuns: 100 },
  );
});
