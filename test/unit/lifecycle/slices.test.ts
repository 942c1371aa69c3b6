import { expect, it } from "vitest";
import { parseManifests, parsingManifests } from "../../../src/cluster/manifests.ts";
import { FeatureGates } from "../../../src/config/feature-gates.ts";
import { atOnce, inSlices, sorting } from "../../../src/lifecycle/slices.ts";

const documents = Array.from(
  { length: 1_000 },
  (_, index) => `apiVersion: v1
kind: Service
metadata: { name: service-${index}, namespace: default }
spec: { ports: [{ port: 80 }] }
`,
);
const files = [{ name: "services.yaml", text: documents.join("---\n") }];

it("a large file is read in many turns, to what it is read to at once", async () => {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const objects = await inSlices(parsingManifests(files, FeatureGates.defaults));
  isOver = true;
  expect(objects).toEqual(parseManifests(files));
  expect(turns).toBeGreaterThan(10);
});

it.each([
  0, 1, 255, 256, 257, 1_000, 5_000,
])("sorts %i items as an array does, and keeps equal ones in their order", (length) => {
  const items = Array.from({ length }, (_, index) => ({ key: (index * 7_919) % 97, index }));
  const byKey = (a: { key: number }, b: { key: number }): number => a.key - b.key;
  for (const given of [items, items.toSorted(byKey), items.toReversed()])
    expect(atOnce(sorting(given, byKey))).toEqual(given.toSorted(byKey));
});

it("rejects with what the work throws", async () => {
  const wrong = [{ name: "wrong.yaml", text: `${files[0]?.text}---\n{ kind: Pod` }];
  await expect(inSlices(parsingManifests(wrong, FeatureGates.defaults))).rejects.toThrow("wrong.yaml:");
});
