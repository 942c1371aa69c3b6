import { afterAll, beforeAll, expect, inject, it } from "vitest";
import type { Endpoint } from "../../packages/lab/src/conformance/index.ts";
import {
  losses,
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
/** Sessions of each path in full runs. Kubernetes' own servers are tried for comparison. */
const [OURS, THEIRS] = [SESSIONS, Math.ceil(SESSIONS / 2)];

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
    const command = `SLUICE_WRITE_DOCS=1 SLUICE_SESSIONS=${SESSIONS} npx vitest run --config test/cluster/vitest.config.ts test/cluster/slow-reader.test.ts`;
    publishSlowRows("In a cluster", command, rows);
  });

  async function read(server: string, endpoint: Endpoint, runs: number): Promise<SlowRow[]> {
    const read = await readSlowly({ server, endpoint, runs });
    rows.push(...read);
    return read;
  }

  it("are measured with Kubernetes' own servers", { timeout: RUN_MS }, async ({ skip }) => {
    skip(!isFullRun, "SLUICE_FULL=1");
    const straight = `kube-apiserver ${version} before kubelet ${version}`;
    await read(straight, await endpoints.apiServer("straight"), THEIRS);
    const node = await read(`kubelet ${version}`, endpoints.kubelet(ADDRESSES.kubelet), THEIRS);
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
      const tried = await read(server, await open(), OURS);
      expect(losses(tried)).toEqual([]);
      expect(refusedPaths(tried)).toEqual([]);
    },
  );
});
