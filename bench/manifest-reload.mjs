// How long the reading of many Ingresses holds up everything else: the longest turn of the event loop, all at once, in
// slices and by a thread; as documents and as one List; and putting them into the store.
//   node bench/manifest-reload.mjs [ingresses]

import { ClusterStore } from "../dist/src/cluster/cluster-store.js";
import { ManifestMemory } from "../dist/src/cluster/manifest-memory.js";
import { parseManifests, parsingManifests, readingFiles } from "../dist/src/cluster/manifests.js";
import { readInThread } from "../dist/src/cluster/read-in-thread.js";
import { FeatureGates } from "../dist/src/config/feature-gates.js";
import { inSlices } from "../dist/src/lifecycle/slices.js";
import { table } from "./document.mjs";
import { withSpread } from "./text.mjs";

const count = Number(process.argv[2] ?? 10_000);
const ROUNDS = 3;
const ingress = (index) => `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: ingress-${index}, namespace: default }
spec:
  ingressClassName: sluice
  rules:
    - host: host-${index}.example.com
      http:
        paths:
          - { path: /, pathType: Prefix, backend: { service: { name: app, port: { number: 80 } } } }
`;
const text = Array.from({ length: count }, (_, index) => ingress(index)).join("---\n");
const files = [{ name: "ingresses.yaml", text }];
const asItem = (document) => document.replace(/^/gm, "  ").replace(/^ {2}/, "- ").trimEnd();
const items = Array.from({ length: count }, (_, index) => asItem(ingress(index))).join("\n");
const list = [{ name: "list.yaml", text: `apiVersion: v1\nkind: List\nitems:\n${items}\n` }];

/** Milliseconds of this thread's own work where Node tells them (from 23.9 on): others that are busy on the machine do not count. */
const workMs = () => {
  const used = process.threadCpuUsage?.();
  return used === undefined ? performance.now() : (used.user + used.system) / 1000;
};

/** Milliseconds of the longest turn while `work` runs, and of all of it, waiting included. */
async function longestTurn(work) {
  let last = workMs();
  let longest = 0;
  let isOver = false;
  const tick = () => {
    const now = workMs();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setImmediate(tick);
  };
  setImmediate(tick);
  await new Promise((resolve) => setImmediate(resolve));
  const startMs = performance.now();
  await work();
  const wholeMs = performance.now() - startMs;
  await new Promise((resolve) => setImmediate(resolve));
  isOver = true;
  return { longest: Math.round(longest), whole: Math.round(wholeMs) };
}

const gates = FeatureGates.defaults;
const objects = parseManifests(files, gates);
const store = new ClusterStore({ firstResourceVersion: 1 });
store.replaceAll(objects, new Date());
// Other readings of the same files, made beforehand.
const readings = Array.from({ length: 2 * ROUNDS }, () => structuredClone(objects));
const another = () => readings.pop();
/** A reload as a gateway does it: what a memory has is not read again. */
const memory = new ManifestMemory();
async function reload(now) {
  const comparison = await inSlices(memory.comparing(now));
  const { changed, known } = comparison;
  await inSlices(memory.keeping(comparison, await inSlices(readingFiles(changed, { gates, known }))));
}
await reload(files);
let edits = 0;
const edited = () => [{ ...files[0], text: text.replace("number: 80", `number: ${8_000 + edits++}`) }];
const ways = {
  "read at once": async () => void parseManifests(files, gates),
  "read in slices": async () => void (await inSlices(parsingManifests(files, gates))),
  "one changed": () => reload(edited()),
  "read by a thread": async () => void (await readInThread(files, gates)),
  "a List in slices": async () => void (await inSlices(parsingManifests(list, gates))),
  "a List by a thread": async () => void (await readInThread(list, gates)),
  "stored at once": async () => store.replaceAll(another(), new Date()),
  "stored in slices": async () => void (await inSlices(store.replacingAll(another(), new Date()))),
};
const results = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [way, work] of Object.entries(ways)) results[way].push(await longestTurn(work));
}
const rows = Object.entries(results).map(([way, rounds]) => [
  way,
  withSpread(
    rounds.map(({ longest }) => longest),
    0,
  ),
  withSpread(
    rounds.map(({ whole }) => whole),
    0,
  ),
]);
console.log(table([`${count} Ingresses`, "longest turn, ms", "in all, ms"], rows));
