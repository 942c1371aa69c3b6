import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { ALL_CASES } from "../../packages/lab/src/conformance/all-cases.ts";
import type { Endpoint } from "../../packages/lab/src/conformance/endpoint.ts";
import { runConformance } from "../../packages/lab/src/conformance/run-cases.ts";
import { HOP_IDLE_SCALE } from "../support/conformance/configured-hops.ts";
import {
  ATTACH_WITHOUT_INPUT,
  type KnownFailure,
  TRUNCATION,
  UNREAD_INPUT,
  unexplained,
} from "../support/conformance/known-failures.ts";
import { publish } from "../support/conformance/published-table.ts";
import { quickSettings } from "../support/conformance/tested-demo.ts";
import { describeReal, isFullRun } from "../support/real-parts.ts";
import { type ClusterEndpoints, openEndpoints } from "./cluster-endpoints.ts";
import type { DoorName } from "./doors.ts";
import { ADDRESSES } from "./kubernetes/credentials.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";

const RUN_MS = 600_000;
/** What takes seconds is left to full runs: silence, long transfers, many sessions, and input that containerd waits for. */
const LONG_CASES =
  /^(?:idle|heartbeat|slow-reader|backpressure|abrupt-end|sessions|cost|port-forward\/short|closing\/unread)/;
const CASES = ALL_CASES.filter(({ id }) => isFullRun || !LONG_CASES.test(id));

/** containerd's, behind whatever server. */
const OF_CONTAINERD = [ATTACH_WITHOUT_INPUT, UNREAD_INPUT];
const OF_KUBERNETES = [TRUNCATION, ...OF_CONTAINERD];

describeReal("cluster", "conformance of a cluster", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  // Absent where the suite is skipped.
  const version = (cluster as ClusterAddresses | undefined)?.version;
  let endpointsOf: ClusterEndpoints;
  beforeAll(async () => {
    endpointsOf = await openEndpoints(cluster, ["straight", "gateway", "node", "both"]);
  });
  afterAll(() => endpointsOf?.stop());
  const apiServer = (name: DoorName): Promise<Endpoint> => endpointsOf.apiServer(name);
  const kubelet = (address: string): Endpoint => endpointsOf.kubelet(address);

  const endpoints: readonly [string, () => Endpoint | Promise<Endpoint>, readonly KnownFailure[]][] = [
    [`kube-apiserver ${version}`, () => apiServer("straight"), OF_KUBERNETES],
    [`Sluice's gateway before kubelet ${version}`, () => apiServer("gateway"), OF_CONTAINERD],
    [`kube-apiserver ${version} before Sluice as the kubelet`, () => apiServer("node"), OF_KUBERNETES],
  ];
  // Kubernetes' own is judged by one of its servers, Sluice by one half at a time: the differential has both halves.
  const onFullRuns: typeof endpoints = [
    [`kubelet ${version}`, () => kubelet(ADDRESSES.kubelet), OF_KUBERNETES],
    ["Sluice as the kubelet", () => kubelet(ADDRESSES.sluiceNode), OF_CONTAINERD],
    ["Sluice's gateway before Sluice as the kubelet", () => apiServer("both"), OF_CONTAINERD],
  ];

  if (!isFullRun) for (const [name] of onFullRuns) it.skip(`${name} (SLUICE_FULL=1)`);
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
