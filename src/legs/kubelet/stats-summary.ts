import { readFile, statfs } from "node:fs/promises";
import type { ContainerStats, Counted, CriRuntime } from "../../cri/cri-runtime.ts";
import { nameOf, POD_LABELS, uidOf } from "../../cri/pods.ts";
import { listNodePods, timeOf } from "./list-pods.ts";

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
