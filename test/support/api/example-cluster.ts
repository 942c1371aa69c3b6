import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { parseManifests } from "../../../src/cluster/manifests.ts";

/** Two nodes and three pods, as an operator would write them. */
export const exampleManifests = `
apiVersion: v1
kind: Node
metadata:
  name: node-spdy
  labels: {kubernetes.io/hostname: node-spdy, node-role.kubernetes.io/edge: ""}
  creationTimestamp: "2020-01-01T00:00:00Z"
status:
  addresses: [{type: InternalIP, address: 10.0.0.1}, {type: Hostname, address: node-spdy.test}]
  daemonEndpoints: {kubeletEndpoint: {Port: 10251}}
  conditions: [{type: Ready, status: "True"}]
  nodeInfo: {kubeletVersion: v1.30.0, osImage: Debian, kernelVersion: "6.1", containerRuntimeVersion: containerd://1.6.20}
---
apiVersion: v1
kind: Node
metadata: {name: node-ws, creationTimestamp: null}
spec: {unschedulable: true}
status:
  addresses: [{type: ExternalIP, address: 203.0.113.9}]
  declaredFeatures: [ExtendWebSocketsToKubelet]
---
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web, tier: front}
  creationTimestamp: "2020-01-01T00:00:00Z"
spec:
  nodeName: node-spdy
  someday: {unknown: [kept, 1, true]}
  containers:
    - name: main
      image: web:1
      ports: [{containerPort: 80, name: http}]
status: {podIP: 10.1.0.7}
---
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Pod
    metadata: {name: web-ws, labels: {app: web, tier: back}}
    spec: {nodeName: node-ws, containers: [{name: main, image: web:1}, {name: side, image: side:1}]}
  - apiVersion: v1
    kind: Pod
    metadata: {name: waiting, namespace: other}
    spec: {containers: [{name: main, image: web:1}]}
`;

export function exampleCluster(): ClusterStore {
  const store = new ClusterStore();
  const objects = parseManifests([{ name: "example.yaml", text: exampleManifests }]);
  store.replaceAll(objects, new Date("2026-01-01T00:00:00Z"));
  return store;
}
