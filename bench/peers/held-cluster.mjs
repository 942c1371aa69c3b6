// `node --expose-gc held-cluster.mjs KUBECONFIG`: watches the cluster in this process and prints as
// JSON: the memory of a pod, the duration of the lists, and the cost of looking up a pod with its
// container, node and address.

import { loadKubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import { ClusterStore } from "../../dist/src/cluster/cluster-store.js";
import { locate } from "../../dist/src/cluster/locate.js";
import { defaultConfiguration } from "../../dist/src/config/configuration.js";
import { ApiClient } from "../../dist/src/kubernetes/api-client.js";
import { LiveCluster } from "../../dist/src/kubernetes/live-cluster.js";
import { Metrics } from "../../dist/src/observability/metrics.js";

const LOOK_UPS = 200_000;
const kubeconfig = await loadKubeconfig(process.argv[2]);
const client = new ApiClient({ kubeconfig, dialTimeoutMs: 10_000 });
const store = new ClusterStore();
const metrics = new Metrics({ withProcessMetrics: false }).cluster;
const logger = { info() {}, warn() {} };

const heldBytes = async () => {
  for (let times = 0; times < 4; times += 1) {
    globalThis.gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return process.memoryUsage().heapUsed;
};

/** Watches these kinds until they are listed. */
const follow = async (kinds) => {
  const live = new LiveCluster({ client, store, kinds, metrics, logger });
  const startedMs = performance.now();
  live.start();
  while (live.unsynced.length > 0) await new Promise((resolve) => setTimeout(resolve, 2));
  const seconds = (performance.now() - startedMs) / 1_000;
  await live.stop();
  return seconds;
};

await follow(["Namespace"]);
const empty = await heldBytes();
const nodeSeconds = await follow(["Node"]);
const withNodes = await heldBytes();
const podSeconds = await follow(["Pod"]);
const withPods = await heldBytes();

const pods = store.listPods();
const wanted = Array.from({ length: 1_000 }, () => pods[Math.floor(Math.random() * pods.length)].metadata);
const requests = wanted.map(({ namespace, name: pod }) => ({ subresource: "exec", namespace, pod }));
const { preferredAddressTypes, port } = defaultConfiguration().kubelet;
const options = { preferredAddressTypes, defaultKubeletPort: port };
const lookUp = (times) => {
  for (let index = 0; index < times; index += 1) locate(store, requests[index % requests.length], options);
};
lookUp(LOOK_UPS);
const before = process.cpuUsage();
lookUp(LOOK_UPS);
const lookUpNs = (process.cpuUsage(before).user * 1e3) / LOOK_UPS;
client.close();

const nodes = store.listNodes().length;
console.log(
  JSON.stringify({
    pods: pods.length,
    nodes,
    bytesPerPod: (withPods - withNodes) / pods.length,
    bytesPerNode: (withNodes - empty) / nodes,
    podSeconds,
    nodeSeconds,
    lookUpNs,
  }),
);
