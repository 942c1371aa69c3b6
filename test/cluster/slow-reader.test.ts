import { afterAll, beforeAll, expect, inject, it } from "vitest";
import type { Endpoint } from "../../packages/lab/src/conformance/endpoint.ts";
import {
  losses,
  PEER_SESSIONS,
  publishSlowRows,
  readSlowly,
  refusedPaths,
  SESSIONS,
  type SlowRow,
} from "../support/conformance/slow-readers.ts";
import { describeReal, isFullRun } from "../support/real-parts.ts";
import { type ClusterEndpoints, openEndpoints } from "./cluster-endpoints.ts";
import { ADDRESSES } from "./kubernetes/credentials.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";

const RUN_MS = isFullRun ? 3_600_000 : 600_000;

describeReal("cluster", "slow readers of a cluster's output", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  // Absent where the suite is skipped.
  const version = (cluster as ClusterAddresses | undefined)?.version;
  let endpoints: ClusterEndpoints;
  const rows: SlowRow[] = [];

  beforeAll(async () => {
    endpoints = await openEndpoints(cluster, ["straight", "gateway", "node", "both"]);
  });
  afterAll(async () => {
    await endpoints?.stop();
  });

  async function read(server: string, endpoint: Endpoint, runs: number): Promise<SlowRow[]> {
    const read = await readSlowly({ server, endpoint, runs });
    rows.push(...read);
    // After each server: a run of an hour that is broken off keeps the rows that it finished.
    publishSlowRows("In a cluster", "cluster", rows);
    return read;
  }

  it("are measured with Kubernetes' own servers", { timeout: RUN_MS }, async ({ skip }) => {
    skip(!isFullRun, "SLUICE_FULL=1");
    const straight = `kube-apiserver ${version} before kubelet ${version}`;
    await read(straight, await endpoints.apiServer("straight"), PEER_SESSIONS);
    const node = await read(`kubelet ${version}`, endpoints.kubelet(ADDRESSES.kubelet), PEER_SESSIONS);
    expect(refusedPaths(node)).toEqual([]);
  });

  const ours: readonly [string, () => Endpoint | Promise<Endpoint>][] = [
    [`Sluice's gateway before kubelet ${version}`, () => endpoints.apiServer("gateway")],
    ["Sluice's gateway before Sluice as the kubelet", () => endpoints.apiServer("both")],
  ];
  const onFullRuns: typeof ours = [["Sluice as the kubelet", () => endpoints.kubelet(ADDRESSES.sluiceNode)]];

  it.each(isFullRun ? [...ours, ...onFullRuns] : ours)(
    "lose nothing behind %s",
    { timeout: RUN_MS },
    async (server, open) => {
      const tried = await read(server, await open(), SESSIONS);
      expect(losses(tried)).toEqual([]);
      expect(refusedPaths(tried)).toEqual([]);
    },
  );
});
