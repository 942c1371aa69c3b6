import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { kubeconfigTarget, Target } from "../../src/client/index.ts";
import {
  ALL_CASES,
  apiServerEndpoint,
  type Endpoint,
  kubeletEndpoint,
  runConformance,
} from "../../src/conformance/index.ts";
import { loadKubeconfig } from "../../src/kubernetes/kubeconfig.ts";
import { HOP_IDLE_SCALE } from "../support/conformance/configured-hops.ts";
import { ECHO_COMMAND, ECHO_POD, serveEcho } from "../support/conformance/echo-pod.ts";
import {
  ATTACH_WITHOUT_INPUT,
  type KnownFailure,
  TRUNCATION,
  UNREAD_INPUT,
  unexplained,
} from "../support/conformance/known-failures.ts";
import { publish } from "../support/conformance/published-table.ts";
import { quickSettings } from "../support/conformance/tested-demo.ts";
import { CriClient } from "../support/cri.ts";
import { describeReal, isFullRun } from "../support/real-parts.ts";
import { type DoorName, type Doors, openDoors } from "./doors.ts";
import { ADDRESSES } from "./kubernetes/credentials.ts";
import { pod } from "./kubernetes/objects.ts";
import { applyObjects, type ClusterAddresses } from "./kubernetes/start-cluster.ts";

const RUN_MS = 600_000;
/** What takes seconds is left to full runs: silence, long transfers, many sessions, and input that containerd waits for. */
const LONG_CASES =
  /^(?:idle|heartbeat|slow-reader|backpressure|abrupt-end|sessions|cost|port-forward\/short|closing\/unread)/;
const CASES = ALL_CASES.filter(({ id }) => isFullRun || !LONG_CASES.test(id));

/** kubernetes/kubernetes#142376, at the size of its report and beyond; clients send a PING each 500 ms meanwhile. */
const MIB = 1024 * 1024;
const SLOW_SIZES = [
  { runs: 1, slowBytes: 16 * MIB, slowRate: 4 * MIB },
  { runs: 1, slowBytes: 64 * MIB, slowRate: 3 * MIB },
] as const;
/** All at once: each waits for its client most of the time. */
const SLOW_CASES = ALL_CASES.filter(({ id }) => id.startsWith("slow-reader/")).map((one) => ({
  ...one,
  isPassive: true,
}));

/** containerd's, behind whatever server. */
const OF_CONTAINERD = [ATTACH_WITHOUT_INPUT, UNREAD_INPUT];
const OF_KUBERNETES = [TRUNCATION, ...OF_CONTAINERD];

describeReal("cluster", "conformance of a cluster", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  // Absent where the suite is skipped.
  const version = (cluster as ClusterAddresses | undefined)?.version;
  const pem = (name: string): string => readFileSync(path.join(cluster.credentials, name), "utf8");
  let doors: Doors;
  let stopEcho = async (): Promise<void> => {};

  beforeAll(async () => {
    doors = await openDoors(cluster, ["straight", "gateway", "node", "both"]);
    const main = { name: ECHO_POD.container, command: ECHO_COMMAND, stdin: true };
    const kubectl = path.join(cluster.programs, "kubectl");
    await applyObjects(kubectl, cluster.adminKubeconfig, [pod(ECHO_POD.pod, [main])]);
    const wait = ["wait", "--for=condition=Ready", "--timeout=60s", `pod/${ECHO_POD.pod}`];
    await promisify(execFile)(kubectl, ["--kubeconfig", cluster.adminKubeconfig, ...wait]);
    const cri = new CriClient(cluster.runtimeSocket);
    stopEcho = await serveEcho(cri).finally(() => cri.close());
  });
  afterAll(async () => {
    await stopEcho();
    await doors?.stop();
  });

  async function apiServer(name: DoorName): Promise<Endpoint> {
    const door = doors.doors.find((one) => one.name === name);
    if (door === undefined) throw new Error(`${name} is not open`);
    const { kubeconfig } = await door.access("alice");
    return apiServerEndpoint(kubeconfigTarget(await loadKubeconfig(kubeconfig, undefined)), ECHO_POD);
  }

  async function kubelet(address: string): Promise<Endpoint> {
    const url = `https://${address}:${cluster.kubeletPort}`;
    const tls = {
      ca: pem("ca.crt"),
      certificate: pem("apiserver-kubelet-client.crt"),
      key: pem("apiserver-kubelet-client.key"),
    };
    return kubeletEndpoint(new Target({ url, tls, proxy: "none" }), ECHO_POD);
  }

  const endpoints: readonly [string, () => Promise<Endpoint>, readonly KnownFailure[]][] = [
    [`kube-apiserver ${version}`, () => apiServer("straight"), OF_KUBERNETES],
    [`kubelet ${version}`, () => kubelet(ADDRESSES.kubelet), OF_KUBERNETES],
    [`Sluice's gateway before kubelet ${version}`, () => apiServer("gateway"), OF_CONTAINERD],
    [`kube-apiserver ${version} before Sluice as the kubelet`, () => apiServer("node"), OF_KUBERNETES],
  ];
  const onFullRuns: typeof endpoints = [
    ["Sluice as the kubelet", () => kubelet(ADDRESSES.sluiceNode), OF_CONTAINERD],
    ["Sluice's gateway before Sluice as the kubelet", () => apiServer("both"), OF_CONTAINERD],
  ];

  it.each([
    ["Sluice's gateway before the kubelet", () => apiServer("gateway")],
    ["Sluice's gateway before Sluice as the kubelet", () => apiServer("both")],
  ] as const)("%s loses nothing to a slow reader's PINGs", { timeout: RUN_MS }, async (_name, open) => {
    const endpoint = await open();
    const reports: Awaited<ReturnType<typeof runConformance>>[] = [];
    for (const { runs, ...size } of SLOW_SIZES) {
      const settings = { ...quickSettings, ...size, stallMs: 5_000, caseTimeoutMs: 240_000 };
      const one = () => runConformance(endpoint, { cases: SLOW_CASES, settings });
      reports.push(...(await Promise.all(Array.from({ length: runs }, one))));
    }
    expect(reports.flatMap((report) => unexplained(report))).toEqual([]);
    expect(reports.map(({ counts }) => counts.passed)).toEqual(reports.map(() => SLOW_CASES.length));
  });

  it.each(isFullRun ? [...endpoints, ...onFullRuns] : endpoints)(
    "%s fails in nothing but what is known",
    { timeout: RUN_MS },
    async (name, open, known) => {
      const settings = { ...quickSettings, idleScale: HOP_IDLE_SCALE };
      const report = await runConformance(await open(), { cases: CASES, settings });
      if (isFullRun) publish(name, report, known);
      expect(unexplained(report, known)).toEqual([]);
      const skipped = report.cases.filter(({ verdict }) => verdict === "skipped").map(({ id }) => id);
      expect(skipped.filter((id) => id !== "http2/extended-connect")).toEqual([]);
    },
  );
});
