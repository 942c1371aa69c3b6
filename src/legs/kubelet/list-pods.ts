import type { Pod } from "../../api/objects.ts";
import {
  CONTAINER_STATE,
  type CriRuntime,
  type PodSandbox,
  type RuntimeContainer,
  SANDBOX_READY,
} from "../../cri/cri-runtime.ts";
import { byAttempt, bySandboxAge, nameOf, POD_LABELS, uidOf } from "../../cri/pods.ts";

/** A pod on the node, with its containers' current attempts. */
interface NodePod {
  readonly sandbox: PodSandbox;
  readonly containers: readonly RuntimeContainer[];
}

/**
 * Lists each pod once, by namespace and name. Skips earlier sandboxes and attempts, and anything
 * that is not a Kubernetes pod.
 */
export async function listNodePods(runtime: CriRuntime): Promise<readonly NodePod[]> {
  const [sandboxes, containers] = await Promise.all([runtime.listPodSandboxes(), runtime.listContainers()]);
  const present = new Map<string, PodSandbox>();
  for (const sandbox of sandboxes.filter(({ labels }) => POD_LABELS.name in labels).toSorted(bySandboxAge)) {
    if (!present.has(uidOf(sandbox))) present.set(uidOf(sandbox), sandbox);
  }
  const bySandbox = new Map<string, RuntimeContainer[]>();
  for (const container of containers) {
    const known = bySandbox.get(container.podSandboxId);
    if (known === undefined) bySandbox.set(container.podSandboxId, [container]);
    else known.push(container);
  }
  return Array.from(present.values(), (sandbox) => ({
    sandbox,
    containers: presentAttempts(bySandbox.get(sandbox.id) ?? []),
  })).toSorted((left, right) => (keyOf(left.sandbox) < keyOf(right.sandbox) ? -1 : 1));
}

/** The PodList of `/pods`. The runtime knows less than the pods' manifests contain. */
export async function podListOf(runtime: CriRuntime, nodeName: string): Promise<object> {
  const pods = await listNodePods(runtime);
  return {
    kind: "PodList",
    apiVersion: "v1",
    metadata: {},
    items: pods.map((pod) => podOf(pod, nodeName)),
  };
}

function podOf({ sandbox, containers }: NodePod, nodeName: string): Omit<Pod, "kind" | "apiVersion"> {
  const { metadata, labels, annotations, createdAt, state } = sandbox;
  return {
    metadata: {
      name: labels[POD_LABELS.name] ?? metadata.name,
      namespace: labels[POD_LABELS.namespace] ?? metadata.namespace,
      uid: uidOf(sandbox),
      creationTimestamp: timeOf(createdAt),
      labels: withoutRuntimeLabels(labels),
      annotations,
    },
    spec: {
      nodeName,
      containers: containers.map((container) => ({
        name: nameOf(container),
        image: container.image?.image ?? container.imageRef,
      })),
    },
    status: {
      phase: phaseOf(state === SANDBOX_READY, containers),
      startTime: timeOf(createdAt),
      containerStatuses: containers.map((container) => ({
        name: nameOf(container),
        ready: container.state === CONTAINER_STATE.running,
        restartCount: container.metadata.attempt,
        image: container.image?.image ?? container.imageRef,
        imageID: container.imageRef,
        containerID: `containerd://${container.id}`,
        state: stateOf(container),
      })),
    },
  };
}

/** The runtime's list has no exit codes, so no pod is reported as Succeeded or Failed. */
function phaseOf(isReady: boolean, containers: readonly RuntimeContainer[]): string {
  const isAnyRunning = containers.some(({ state }) => state === CONTAINER_STATE.running);
  if (isAnyRunning) return "Running";
  return isReady ? "Pending" : "Unknown";
}

function stateOf({ state, createdAt }: RuntimeContainer) {
  if (state === CONTAINER_STATE.running) return { running: { startedAt: timeOf(createdAt) } };
  if (state === CONTAINER_STATE.exited) return { terminated: {} };
  return { waiting: { reason: "ContainerCreating" } };
}

function presentAttempts(containers: readonly RuntimeContainer[]): readonly RuntimeContainer[] {
  const present = new Map<string, RuntimeContainer>();
  for (const container of containers.toSorted(byAttempt)) {
    if (!present.has(nameOf(container))) present.set(nameOf(container), container);
  }
  return [...present.values()].toSorted((left, right) => left.createdAt - right.createdAt);
}

function keyOf({ labels }: PodSandbox): string {
  return `${labels[POD_LABELS.namespace]}/${labels[POD_LABELS.name]}`;
}

/** Removes the labels that the kubelet adds for its own lookups. */
function withoutRuntimeLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  const own: readonly string[] = Object.values(POD_LABELS);
  return Object.fromEntries(Object.entries(labels).filter(([name]) => !own.includes(name)));
}

/** Turns nanoseconds into Kubernetes' time format: whole seconds. */
export function timeOf(nanoseconds: number): string {
  return new Date(nanoseconds / 1e6).toISOString().replace(/\.\d+Z$/, "Z");
}
