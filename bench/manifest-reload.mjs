// Measures how long reading many Ingresses blocks everything else, as the longest turn of the event
// loop: all at once, in slices and in a thread; from documents and from one List; and when they are
// stored and compiled into routes. `node bench/manifest-reload.mjs [ingresses] [part of the rows'
// names] [--write]`

import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { ClusterStore } from "../dist/src/cluster/cluster-store.js";
import { ManifestMemory } from "../dist/src/cluster/manifest-memory.js";
import {
  joiningFiles,
  parseManifests,
  parsingManifests,
  readingFiles,
} from "../dist/src/cluster/manifests.js";
import { readInThread } from "../dist/src/cluster/read-in-thread.js";
import { FeatureGates } from "../dist/src/config/feature-gates.js";
import { routeNamesOf } from "../dist/src/ingress/compile-routes.js";
import { RouteController } from "../dist/src/ingress/route-controller.js";
import { StatusPublisher } from "../dist/src/ingress/status-publisher.js";
import { inSlices } from "../dist/src/lifecycle/slices.js";
import { Metrics } from "../dist/src/observability/metrics.js";
import { machineLine, table, writeSection } from "./document.mjs";
import { withSpread } from "./text.mjs";

const isWritten = process.argv.includes("--write");
const [, , countText, word = ""] = process.argv.filter((argument) => argument !== "--write");
const count = Number(countText ?? 10_000);
const ROUNDS = 3;
const SECRETS = 1_000;
const CONTROLLER = "sluice.dev/ingress-controller";
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

/**
 * Wall-clock milliseconds and the process' CPU milliseconds. A turn takes at most the smaller one:
 * the clock includes other programs, the CPU other threads. A single thread's CPU (threadCpuUsage)
 * advances only in the kernel's ticks of 4 ms.
 */
const timesNow = () => {
  const { user, system } = process.cpuUsage();
  return { clock: performance.now(), cpu: (user + system) / 1000 };
};

/**
 * Upper bound for the longest turn while `work` runs, and the whole duration including waits, in
 * milliseconds.
 */
async function longestTurn(work) {
  let last = timesNow();
  let longest = 0;
  let isOver = false;
  const tick = () => {
    const now = timesNow();
    longest = Math.max(longest, Math.min(now.clock - last.clock, now.cpu - last.cpu));
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
  return { longest, whole: wholeMs };
}

const gates = FeatureGates.defaults;
const objects = parseManifests(files, gates);
const store = new ClusterStore({ firstResourceVersion: 1 });
store.replaceAll(objects, new Date());
// Other copies of the same objects, made in advance.
const readings = Array.from({ length: 2 * ROUNDS }, () => structuredClone(objects));
const another = () => readings.pop();
/** Reloads as a gateway does: documents that the memory knows are not read again. */
async function reload(memory, now) {
  const comparison = await inSlices(memory.comparing(now));
  const { changed, known } = comparison;
  return await inSlices(memory.keeping(comparison, await inSlices(readingFiles(changed, { gates, known }))));
}
/** Compiles a store's routes as a gateway does; `activated` resolves with the next activation. */
async function startRoutes(cluster) {
  const metrics = new Metrics({ withProcessMetrics: false });
  const publisher = new StatusPublisher({
    cluster,
    addresses: ["192.0.2.1"],
    // Acts as if the API server had accepted the status.
    write: async (object, addresses) =>
      void cluster.upsert({ ...object, status: { loadBalancer: { ingress: addresses } } }),
    onFailure: (_ingress, error) => console.error(error),
  });
  let told = () => {};
  const classes = { controllerName: CONTROLLER, legacyClassName: undefined, servesWithoutClass: true };
  await RouteController.start({
    cluster,
    classes,
    hostOwnership: "first",
    *onActive({ ingresses, problems, secrets }) {
      yield* metrics.operations.secretCertificatesServed(secrets.slice(0, SECRETS));
      metrics.ingress.problemsReplaced(problems.map(({ reason }) => reason));
      yield* metrics.ingress.routesReplaced(ingresses.length, routeNamesOf(ingresses), 1_000);
      yield* publisher.publishing(ingresses);
      told();
    },
  });
  await publisher.settled();
  return {
    activated: () =>
      new Promise((resolve) => {
        told = resolve;
      }),
  };
}
/**
 * Other versions of the file's text, made in advance and stored in one piece, like a text read from
 * disk.
 */
const edits = Array.from({ length: 2 * ROUNDS }, (_, index) =>
  Buffer.from(text.replace("number: 80", `number: ${8_000 + index}`)).toString(),
);
const edited = () => [{ ...files[0], text: edits.pop() }];
const known = new ManifestMemory();
await reload(known, files);
const whole = { memory: new ManifestMemory(), store: new ClusterStore({ firstResourceVersion: 1 }) };
const storeWhole = async (now) => {
  const objects = await inSlices(joiningFiles(await reload(whole.memory, now), () => {}));
  await inSlices(whole.store.replacingAll(objects, new Date()));
};
await storeWhole(files);
whole.routes = await startRoutes(whole.store);
const { certPem, keyPem } = await createSelfSignedCertificate(["a.example"], "a.example");
const data = {
  "tls.crt": Buffer.from(certPem).toString("base64"),
  "tls.key": Buffer.from(keyPem).toString("base64"),
};
const secrets = { store: new ClusterStore({ firstResourceVersion: 1 }), round: 0 };
const namesSecret = (index) => ({
  apiVersion: "networking.k8s.io/v1",
  kind: "Ingress",
  metadata: { name: `ingress-${index}`, namespace: "default", uid: `ingress-${index}` },
  spec: { tls: [{ hosts: [`host-${index}.example.com`], secretName: `secret-${index}` }], rules: [] },
});
secrets.store.replaceKind(
  "Ingress",
  Array.from({ length: SECRETS }, (_, index) => namesSecret(index)),
);
secrets.routes = await startRoutes(secrets.store);
const newSecrets = (round) =>
  Array.from({ length: SECRETS }, (_, index) => ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: `secret-${index}`,
      namespace: "default",
      uid: `secret-${index}`,
      resourceVersion: `${round}`,
    },
    type: "kubernetes.io/tls",
    data,
  }));
const ways = {
  "read at once": async () => void parseManifests(files, gates),
  "read in slices": async () => void (await inSlices(parsingManifests(files, gates))),
  "one changed": () => reload(known, edited()),
  "one changed, up to its routes": async () => {
    const activated = whole.routes.activated();
    await storeWhole(edited());
    await activated;
  },
  [`${SECRETS} TLS Secrets at once`]: async () => {
    const activated = secrets.routes.activated();
    secrets.store.replaceKind("Secret", newSecrets(++secrets.round));
    await activated;
  },
  "read by a thread": async () => void (await readInThread(files, gates)),
  "a List in slices": async () => void (await inSlices(parsingManifests(list, gates))),
  "a List by a thread": async () => void (await readInThread(list, gates)),
  "stored at once": async () => store.replaceAll(another(), new Date()),
  "stored in slices": async () => void (await inSlices(store.replacingAll(another(), new Date()))),
};
const wanted = Object.entries(ways).filter(([way]) => way.includes(word));
const results = Object.fromEntries(wanted.map(([way]) => [way, []]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [way, work] of wanted) results[way].push(await longestTurn(work));
}
const rows = Object.entries(results).map(([way, rounds]) => [
  way,
  withSpread(
    rounds.map(({ longest }) => longest),
    1,
  ),
  withSpread(
    rounds.map(({ whole }) => whole),
    0,
  ),
]);
const shown = table([`${count} Ingresses`, "longest turn, ms", "in all, ms"], rows);
console.log(shown);
if (isWritten) {
  writeSection(
    "ends-and-reloads.md",
    "A large manifest",
    `A gateway reads new text by a thread, and compares and stores in slices: no turn over 10 ms is wanted.
The rows "at once" and "in slices" of reading are what it would cost otherwise. "One changed" reads a
file whose other Ingresses are known.

    node bench/manifest-reload.mjs --write

${machineLine()} Medians (minimum-maximum).

${shown}`,
  );
}
