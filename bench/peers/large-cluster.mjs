// The tests' API server with a large cluster, in its own process. A message `{ changesPerSecond }`
// makes it change pods at that rate (0: none) until the next message; it replies with the number of
// changes so far.
import { TestApiServer } from "../../node_modules/.cache/sluice-bench/test/support/api-server/test-api-server.js";

const [nodes, pods, kubeletPort, kubeconfig] = process.argv.slice(2);
const PODS_PER_NAMESPACE = 500;
const TICK_MS = 10;
const server = await TestApiServer.start({ maxEvents: 50_000 });

server.apply({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "front" },
  status: {
    addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
    daemonEndpoints: { kubeletEndpoint: { Port: Number(kubeletPort) } },
    declaredFeatures: ["ExtendWebSocketsToKubelet"],
  },
});
server.apply(pod("default", "web", "front", 0));
for (let index = 0; index < Number(nodes); index += 1) server.apply(node(`node-${index}`));
const names = [];
for (let index = 0; index < Number(pods); index += 1) {
  const namespace = `team-${Math.floor(index / PODS_PER_NAMESPACE)}`;
  names.push([namespace, `app-7d4f9c6b5d-${index}`, `node-${index % Math.max(1, Number(nodes))}`]);
  server.apply(pod(...names.at(-1), 0));
}
await server.writeKubeconfig(kubeconfig);

let timer;
let changed = 0;
process.on("message", ({ changesPerSecond }) => {
  clearInterval(timer);
  process.send({ changed });
  const startedMs = performance.now();
  let done = 0;
  if (changesPerSecond === 0) return;
  timer = setInterval(() => {
    // Follows the clock, so that a late tick catches up.
    const due = ((performance.now() - startedMs) / 1_000) * changesPerSecond;
    for (; done < due; done += 1) {
      server.apply(pod(...names[changed % names.length], changed));
      changed += 1;
    }
  }, TICK_MS);
});
process.send({ ready: true });

/** A pod as large as a Deployment's: about 3 KiB of JSON, a third of it managedFields. */
function pod(namespace, name, nodeName, restartCount) {
  const env = Array.from({ length: 12 }, (_, index) => ({
    name: `SETTING_${index}`,
    value: `value-${index}`,
  }));
  const container = {
    name: "main",
    image: "registry.example.com/team/application:1.27.3",
    ports: [{ name: "http", containerPort: 8080, protocol: "TCP" }],
    env,
    resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    readinessProbe: { httpGet: { path: "/ready", port: "http" }, periodSeconds: 10 },
    volumeMounts: [
      { name: "token", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true },
    ],
  };
  const condition = (type) => ({ type, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" });
  const running = { startedAt: "2026-01-01T00:00:00Z" };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      labels: { app: "application", "pod-template-hash": "7d4f9c6b5d", team: namespace },
      ownerReferences: [
        { apiVersion: "apps/v1", kind: "ReplicaSet", name: "app-7d4f9c6b5d", uid: "u", controller: true },
      ],
      managedFields: env.map(({ name: field }) => ({
        manager: "kubelet",
        operation: "Update",
        fieldsV1: { [`f:${field}`]: {} },
      })),
    },
    spec: {
      nodeName,
      containers: [container],
      volumes: [{ name: "token", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } }],
      tolerations: [{ key: "node.kubernetes.io/not-ready", operator: "Exists", effect: "NoExecute" }],
    },
    status: {
      phase: "Running",
      podIP: "10.0.0.1",
      hostIP: "192.168.0.1",
      conditions: ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition),
      containerStatuses: [{ name: "main", ready: true, started: true, restartCount, state: { running } }],
    },
  };
}

function node(name) {
  const images = Array.from({ length: 30 }, (_, index) => ({
    names: [`registry.example.com/image-${index}@sha256:0`],
    sizeBytes: index,
  }));
  const condition = (type) => ({
    type,
    status: type === "Ready" ? "True" : "False",
    lastHeartbeatTime: "2026-01-01T00:00:00Z",
  });
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "kubernetes.io/hostname": name } },
    status: {
      addresses: [
        { type: "InternalIP", address: "192.168.0.1" },
        { type: "Hostname", address: name },
      ],
      daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
      conditions: ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"].map(condition),
      images,
    },
  };
}
