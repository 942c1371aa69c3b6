import { readFile, statfs } from "node:fs/promises";
import type { Pod } from "../../api/objects.ts";
import {
  CONTAINER_STATE,
  type ContainerStats,
  type Counted,
  type CriRuntime,
  type PodSandbox,
  type RuntimeContainer,
  SANDBOX_READY,
} from "../../cri/cri-runtime.ts";
import { byAttempt, bySandboxAge, nameOf, POD_LABELS, uidOf } from "../../cri/pods.ts";

/**
 * The summary of `/stats/summary` (stats.k8s.io/v1alpha1), with the figures that this machine and
 * the runtime provide. Others are absent.
 */
export async function statsSummary(runtime: CriRuntime, nodeName: string): Promise<object> {
  const [node, pods, stats] = await Promise.all([
    nodeStats(nodeName),
    listNodePods(runtime),
    runtime.listContainerStats(),
  ]);
  const byContainer = new Map(stats.map((each) => [each.attributes.id, each]));
  return {
    node,
    pods: pods.map(({ sandbox, containers }) => ({
      podRef: {
        name: sandbox.labels[POD_LABELS.name],
        namespace: sandbox.labels[POD_LABELS.namespace],
        uid: uidOf(sandbox),
      },
      startTime: timeOf(sandbox.createdAt),
      containers: containers.flatMap((container) => {
        const counted = byContainer.get(container.id);
        const name = nameOf(container);
        return counted === undefined
          ? []
          : [{ name, startTime: timeOf(container.createdAt), ...usageOf(counted) }];
      }),
    })),
  };
}

function usageOf({ cpu, memory, writableLayer }: ContainerStats): object {
  return {
    ...(cpu !== null && {
      cpu: {
        time: timeOf(cpu.timestamp),
        ...counted("usageNanoCores", cpu.usageNanoCores),
        ...counted("usageCoreNanoSeconds", cpu.usageCoreNanoSeconds),
      },
    }),
    ...(memory !== null && {
      memory: {
        time: timeOf(memory.timestamp),
        ...counted("workingSetBytes", memory.workingSetBytes),
        ...counted("usageBytes", memory.usageBytes),
        ...counted("rssBytes", memory.rssBytes),
      },
    }),
    ...(writableLayer !== null && {
      rootfs: {
        time: timeOf(writableLayer.timestamp),
        ...counted("usedBytes", writableLayer.usedBytes),
        ...counted("inodesUsed", writableLayer.inodesUsed),
      },
    }),
  };
}

function counted(name: string, value: Counted): object {
  return value === null ? {} : { [name]: value.value };
}

/** Linux reports /proc's clock ticks as hundredths of a second to every program. */
const TICK_NANOSECONDS = 1e7;

async function nodeStats(nodeName: string): Promise<object> {
  const [stat, meminfo, fs] = await Promise.all([
    readFile("/proc/stat", "utf8"),
    readFile("/proc/meminfo", "utf8"),
    statfs("/"),
  ]);
  const time = timeOf(Date.now() * 1e6);
  const bootSeconds = Number(/^btime (\d+)$/m.exec(stat)?.[1]);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0] = (/^cpu +(.*)$/m.exec(stat)?.[1] ?? "")
    .split(" ")
    .map(Number);
  const memory = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB$`, "m").exec(meminfo)?.[1]) * 1024;
  const [total, free, available] = [memory("MemTotal"), memory("MemFree"), memory("MemAvailable")];
  return {
    nodeName,
    startTime: timeOf(bootSeconds * 1e9),
    cpu: { time, usageCoreNanoSeconds: (user + nice + system + irq + softIrq) * TICK_NANOSECONDS },
    memory: {
      time,
      availableBytes: available,
      usageBytes: total - free,
      workingSetBytes: total - available,
    },
    fs: {
      time,
      availableBytes: fs.bavail * fs.bsize,
      capacityBytes: fs.blocks * fs.bsize,
      usedBytes: (fs.blocks - fs.bfree) * fs.bsize,
      inodesFree: fs.ffree,
      inodes: fs.files,
      inodesUsed: fs.files - fs.ffree,
    },
  };
}

/** A pod on the node, with its containers' current attempts. */
interface NodePod {
  readonly sandbox: PodSandbox;
  readonly containers: readonly RuntimeContainer[];
}

/**
 * Lists each pod once, by namespace and name. Skips earlier sandboxes and attempts, and anything
 * that is not a Kubernetes pod.
 */
async function listNodePods(runtime: CriRuntime): Promise<readonly NodePod[]> {
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
function timeOf(nanoseconds: number): string {
  return new Date(nanoseconds / 1e6).toISOString().replace(/\.\d+Z$/, "Z");
}
