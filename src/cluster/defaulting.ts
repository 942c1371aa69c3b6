import { createHash } from "node:crypto";
import { withDefaultIngressClass } from "../api/admission/default-ingress-class.ts";
import { keyOf } from "../api/api-object.ts";
import type { IngressClass } from "../api/networking-objects.ts";
import type { Container, ContainerStatus, KubernetesObject, Namespace, Pod } from "../api/objects.ts";
import { DEFAULT_NAMESPACE } from "../api/strategy/read-object.ts";

const READY_POD_CONDITIONS = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];

/** Completed objects by the object that was read: a store compares an identical object at once. */
const completed = new WeakMap<KubernetesObject, KubernetesObject>();

/**
 * Adds the fields that a running cluster would add. A pod without a status counts as running: no
 * kubelet reports it, and kubectl forwards ports only to running pods.
 */
function withDefaults(object: KubernetesObject): KubernetesObject {
  const before = completed.get(object);
  if (before !== undefined) return before;
  const now = completedOf(object);
  completed.set(object, now);
  return now;
}

function completedOf(object: KubernetesObject): KubernetesObject {
  const metadata = { ...object.metadata, uid: object.metadata.uid ?? stableUid(object) };
  switch (object.kind) {
    case "Pod":
      return withPodStatus({ ...object, metadata });
    case "Namespace":
      return withNamespaceStatus({ ...object, metadata });
    default:
      return { ...object, metadata };
  }
}

/**
 * Adds defaults in steps: the files' default class to Ingresses without a class, the namespace
 * `default`, and namespaces that objects name.
 */
export function* completing(objects: readonly KubernetesObject[]): Generator<void, KubernetesObject[]> {
  const classes: IngressClass[] = [];
  const given = new Set<string>();
  const named = new Set([DEFAULT_NAMESPACE]);
  for (const object of objects) {
    const { namespace, name } = object.metadata;
    if (object.kind === "IngressClass") classes.push(object);
    if (object.kind === "Namespace") given.add(name);
    if (namespace !== undefined) named.add(namespace);
    yield;
  }
  const all: KubernetesObject[] = [];
  for (const object of objects) {
    all.push(withDefaults(object.kind === "Ingress" ? withDefaultIngressClass(object, classes) : object));
    yield;
  }
  for (const name of named) {
    if (given.has(name)) continue;
    all.push(withDefaults({ apiVersion: "v1", kind: "Namespace", metadata: { name } }));
    yield;
  }
  return all;
}

/** The same object has the same uid after every restart and on every replica. */
function stableUid(object: KubernetesObject): string {
  const digest = createHash("sha256").update(keyOf(object)).digest();
  // RFC 9562 version 8 (custom), variant 10.
  digest[6] = (digest.readUInt8(6) & 0x0f) | 0x80;
  digest[8] = (digest.readUInt8(8) & 0x3f) | 0x80;
  const hex = digest.toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    "-",
  );
}

function withPodStatus(pod: Pod): Pod {
  const { spec, status = {} } = pod;
  if (status.phase) return pod;
  if (!spec.nodeName) return { ...pod, status: { ...status, phase: "Pending" } };
  const running = {
    phase: "Running",
    conditions: READY_POD_CONDITIONS.map((type) => ({ type, status: "True" })),
    containerStatuses: spec.containers.map((container) => runningStatus(container, pod)),
  };
  return { ...pod, status: { ...running, ...status } };
}

function runningStatus({ name, image = "" }: Container, { metadata }: Pod): ContainerStatus {
  const { creationTimestamp } = metadata;
  const running = creationTimestamp === undefined ? {} : { startedAt: creationTimestamp };
  return { name, image, imageID: "", ready: true, started: true, restartCount: 0, state: { running } };
}

function withNamespaceStatus(namespace: Namespace): Namespace {
  const { metadata, status } = namespace;
  const labels = { "kubernetes.io/metadata.name": metadata.name, ...metadata.labels };
  return { ...namespace, metadata: { ...metadata, labels }, status: { phase: "Active", ...status } };
}
