import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { replaceSection } from "../support/evidence-sections.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import {
  type CheckedPod,
  checkAttach,
  checkCopy,
  checkExec,
  checkPortForward,
} from "../support/kubectl-checks.ts";
import { describeReal, kubectlSample, oldestAndNewest } from "../support/real-parts.ts";
import { findClusterPrograms } from "../support/real-parts-finder.ts";
import { type SkewResult, skewTable } from "../support/skew-table.ts";
import { type MetricSamples, parseMetrics, readMetricsOf } from "../support/taken-path.ts";
import { exchange } from "./differential/raw-exchange.ts";
import { type DoorName, type Doors, openDoors } from "./doors.ts";
import { ADDRESSES } from "./kubernetes/credentials.ts";
import { HTTP_PORT } from "./kubernetes/objects.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";

const DOORS: readonly DoorName[] = ["straight", "node", "gateway", "both"];
const MIB = 1024 * 1024;
const web: CheckedPod = { name: "web", container: "main", folder: "/www", httpPort: HTTP_PORT };

/** With the minor release of kubectl that comes over WebSocket first. */
const checks = [
  { name: "exec", run: checkExec, pod: web, webSocketSince: 30 },
  { name: "attach", run: checkAttach, pod: { ...web, name: "echoer" }, webSocketSince: 30 },
  {
    name: "cp",
    run: (runner: KubectlRunner, pod: CheckedPod) => checkCopy(runner, pod, 4 * MIB),
    pod: web,
    webSocketSince: 30,
  },
  {
    name: "port-forward",
    run: (runner: KubectlRunner, pod: CheckedPod) =>
      checkPortForward(runner, pod, { requests: 20, concurrency: 5 }),
    pod: web,
    webSocketSince: 31,
  },
] as const;

describeReal(["cluster", "kubectl"], "version skew with a real API server", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  const results: SkewResult[] = [];
  let doors: Doors | undefined;
  beforeAll(async () => {
    doors = await openDoors(cluster, DOORS);
  });
  afterAll(async () => {
    await doors?.stop();
    if (process.env.SLUICE_WRITE_DOCS === "1" && results.length === planned)
      writeSection(cluster.version, results);
  });
  const doorOf = (name: DoorName) => {
    const found = doors?.doors.find((door) => door.name === name);
    if (found === undefined) throw new Error(`no way ${name}`);
    return found;
  };

  /** Of the kubelet, or of Sluice in its place: both count the WebSockets that reach the node. */
  const readNode = async (name: DoorName): Promise<MetricSamples> => {
    const door = nodeDoorOf(name);
    if (door !== undefined) return await readMetricsOf(adminUrlOf(doorOf(door).log()));
    const pem = (file: string): string => readFileSync(path.join(cluster.credentials, file), "utf8");
    const access = {
      url: `https://${ADDRESSES.kubelet}:${cluster.kubeletPort}`,
      ca: pem("ca.crt"),
      cert: pem("apiserver-kubelet-client.crt"),
      key: pem("apiserver-kubelet-client.key"),
      kubeconfig: "",
    };
    return parseMetrics((await exchange(access, { method: "GET", path: "/metrics" })).body);
  };
  const webSockets = async (name: DoorName): Promise<number> =>
    Array.from(await readNode(name)).reduce(
      (sum, [sample, value]) =>
        sum + (sample.startsWith("kubelet_websocket_streaming_requests_total{") ? value : 0),
      0,
    );

  const chosen = oldestAndNewest(kubectlSample());
  const rows = DOORS.flatMap((door) =>
    chosen.map((kubectl) => ({ door, kubectl, version: kubectl.version })),
  );
  const planned = rows.length * checks.length;
  describe.each(rows)("$door, kubectl $version", ({ door, kubectl }) => {
    it.each(checks)("$name", async ({ name, run, pod, webSocketSince }) => {
      const combination = combinationOf(door, cluster.version);
      const result = { combination, kubectl: kubectl.version, check: name, hasPassed: false, journey: "?" };
      results.push(result);
      const runner = new KubectlRunner(kubectl, await doorOf(door).access("admin"));
      try {
        const before = await webSockets(door);
        await run(runner, pod);
        const reached = (await webSockets(door)) > before ? "WebSocket" : "SPDY";
        result.journey = `${reached} at the node`;
        // An older API server declares no features of nodes, and translates itself.
        const isExpected = isAtLeast(cluster.version, 36) && kubectl.minor >= webSocketSince;
        expect(reached).toBe(isExpected ? "WebSocket" : "SPDY");
        result.hasPassed = true;
      } finally {
        runner.remove();
      }
    });
  });
});

/** Which door's process stands for the kubelet; `both` is a gateway in front of the same node. */
function nodeDoorOf(name: DoorName): DoorName | undefined {
  return name === "node" || name === "both" ? "node" : undefined;
}

function adminUrlOf(log: string): string {
  const line = log.split("\n").find((candidate) => candidate.includes("the gateway is ready"));
  return JSON.parse(line ?? "{}").adminUrl;
}

function isAtLeast(version: string, minor: number): boolean {
  return Number(version.split(".")[1]) >= minor;
}

function combinationOf(door: DoorName, version: string): string {
  const server = `kube-apiserver ${version}`;
  const api = door === "straight" || door === "node" ? server : `Sluice in front of ${server}`;
  const node = nodeDoorOf(door) === undefined ? `kubelet ${findClusterPrograms()?.versions[0]}` : "Sluice";
  return `${api} | ${node}`;
}

function writeSection(version: string, results: readonly SkewResult[]): void {
  const passed = results.filter(({ hasPassed }) => hasPassed).length;
  replaceSection(
    path.resolve(import.meta.dirname, "../../docs/evidence/skew.md"),
    `A real API server: ${version}`,
    `${passed} of ${results.length} checks passed.\n\n${skewTable(results)}`,
  );
}
