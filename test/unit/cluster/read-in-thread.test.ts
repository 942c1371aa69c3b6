import path from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { type ManifestFile, type ReadItem, readingFiles } from "../../../src/cluster/manifests.ts";
import { readInThread } from "../../../src/cluster/read-in-thread.ts";
import { FeatureGates } from "../../../src/config/feature-gates.ts";
import { atOnce } from "../../../src/lifecycle/slices.ts";

/** Threads run what is compiled: Node does not read TypeScript everywhere. */
const program = pathToFileURL(path.resolve("dist/src/cluster/manifest-thread.js"));
const gates = FeatureGates.defaults;

const service = (index: number) => `- apiVersion: v1
  kind: Service
  metadata: { name: service-${index}, namespace: default }
  spec: { ports: [{ port: 80 }] }
`;
const list = (count: number, more = "") => [
  {
    name: "list.yaml",
    text: `apiVersion: v1\nkind: List\nitems:\n${Array.from({ length: count }, (_, index) => service(index)).join("")}${more}`,
  },
];

/** What the thread is to read, without one. */
const readHere = (
  files: readonly ManifestFile[],
  by = gates,
  known: ReadonlyMap<string, ReadItem> = new Map(),
) => atOnce(readingFiles(files, { gates: by, known }));

const h2cPod = [
  {
    name: "pod.yaml",
    text: `apiVersion: v1
kind: Pod
metadata: { name: a }
spec:
  containers:
    - { name: main, image: i, readinessProbe: { httpGet: { port: 80, protocol: HTTP2 } } }
`,
  },
];

describe("manifests that a thread reads", () => {
  it("are what they are without one, and come in many turns", async () => {
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const readings = await readInThread(list(1_050), gates, program);
    isOver = true;
    expect(readings).toEqual(readHere(list(1_050)));
    expect(turns).toBeGreaterThan(11);
  });

  it("are told with all of their problems when they are wrong", async () => {
    const wrong = list(200, "- { apiVersion: v1, kind: Service, metadata: { name: A_ } }\n- 7\n");
    const readings = await readInThread(wrong, gates, program);
    expect(readings).toEqual(readHere(wrong));
    expect(readings[0]?.problems).toHaveLength(3);
  });

  it("are not sent again where they are known", async () => {
    const known = new Map(
      (readHere(list(3))[0]?.found ?? []).map(({ digest, ...item }) => [
        digest,
        { object: item.object, warnings: ["as it was known"] },
      ]),
    );
    const readings = await readInThread(list(4), gates, program, known);
    expect(readings).toEqual(readHere(list(4), gates, known));
    expect(readings[0]?.found.map(({ warnings }) => warnings.length)).toEqual([1, 1, 1, 0]);
  });

  it("are read by the gates that are on", async () => {
    for (const each of [gates, FeatureGates.parse({ H2CContainerProbe: true })]) {
      expect(await readInThread(h2cPod, each, program)).toEqual(readHere(h2cPod, each));
    }
  });

  it.each([
    ["that is not there", "missing.js"],
    ["that fails", "data:text/javascript,throw new Error('broken')"],
    ["that ends without a word", "data:text/javascript,"],
  ])("are not what is wrong with a thread %s", async (_what, place) => {
    const broken = place.startsWith("data:") ? new URL(place) : pathToFileURL(path.resolve(place));
    const error = await readInThread(list(1), gates, broken).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
  });
});
