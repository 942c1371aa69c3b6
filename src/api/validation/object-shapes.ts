import type { Shape } from "./shape.ts";

/** The fields that Sluice reads, with their types in k8s.io/api/core/v1. */
const text: Shape = { json: "string", go: "string" };
const named = (go: string): Shape => ({ json: "string", go: `v1.${go}` });
const flag: Shape = { json: "bool", go: "bool" };
const int32: Shape = { json: "integer", go: "int32" };
const textMap: Shape = { json: "map", go: "map[string]string", values: text };
const struct = (go: string, fields: Readonly<Record<string, Shape>>): Shape => ({
  json: "struct",
  go,
  fields,
});
const listOf = (items: Shape): Shape => ({
  json: "array",
  go: items.json === "struct" ? `[]v1.${items.go}` : `[]${items.go}`,
  items,
});

export const metadataShape: Shape = struct("ObjectMeta", {
  name: text,
  generateName: text,
  namespace: text,
  uid: { json: "string", go: "types.UID" },
  resourceVersion: text,
  creationTimestamp: text,
  deletionTimestamp: text,
  labels: textMap,
  annotations: textMap,
});

const container = struct("Container", {
  name: text,
  image: text,
  ports: listOf(
    struct("ContainerPort", {
      name: text,
      containerPort: int32,
      hostPort: int32,
      protocol: named("Protocol"),
    }),
  ),
});

const condition = (go: string): Shape =>
  struct(go, { type: named(`${go}Type`), status: named("ConditionStatus"), reason: text, message: text });

const containerStatus = struct("ContainerStatus", {
  name: text,
  ready: flag,
  restartCount: int32,
  state: struct("ContainerState", {
    running: struct("ContainerStateRunning", { startedAt: text }),
    waiting: struct("ContainerStateWaiting", { reason: text }),
    terminated: struct("ContainerStateTerminated", { reason: text, exitCode: int32, signal: int32 }),
  }),
});

export const podShape = struct("Pod", {
  apiVersion: text,
  kind: text,
  metadata: metadataShape,
  spec: struct("PodSpec", {
    containers: listOf(container),
    initContainers: listOf(container),
    ephemeralContainers: listOf(container),
    nodeName: text,
    restartPolicy: named("RestartPolicy"),
  }),
  status: struct("PodStatus", {
    phase: named("PodPhase"),
    reason: text,
    podIP: text,
    hostIP: text,
    nominatedNodeName: text,
    startTime: text,
    conditions: listOf(condition("PodCondition")),
    containerStatuses: listOf(containerStatus),
    initContainerStatuses: listOf(containerStatus),
  }),
});

export const nodeShape = struct("Node", {
  apiVersion: text,
  kind: text,
  metadata: metadataShape,
  spec: struct("NodeSpec", { unschedulable: flag }),
  status: struct("NodeStatus", {
    addresses: listOf(struct("NodeAddress", { type: named("NodeAddressType"), address: text })),
    daemonEndpoints: struct("NodeDaemonEndpoints", {
      kubeletEndpoint: struct("DaemonEndpoint", { Port: int32 }),
    }),
    declaredFeatures: listOf(text),
    conditions: listOf(condition("NodeCondition")),
    nodeInfo: struct("NodeSystemInfo", {
      kubeletVersion: text,
      osImage: text,
      kernelVersion: text,
      containerRuntimeVersion: text,
    }),
  }),
});

export const namespaceShape = struct("Namespace", {
  apiVersion: text,
  kind: text,
  metadata: metadataShape,
  status: struct("NamespaceStatus", { phase: named("NamespacePhase") }),
});
