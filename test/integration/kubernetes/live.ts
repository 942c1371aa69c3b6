import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import { loadKubeconfig } from "../../../packages/client/src/kubernetes/kubeconfig.ts";
import type { ObjectKind } from "../../../src/api/objects.ts";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { ApiClient } from "../../../src/kubernetes/api-client.ts";
import { LiveCluster, type LiveClusterOptions } from "../../../src/kubernetes/live-cluster.ts";
import { Backoff } from "../../../src/net/backoff.ts";
import { Metrics } from "../../../src/observability/metrics.ts";
import { TestApiServer, type TestApiServerOptions } from "../../support/api-server/test-api-server.ts";
import { eventually } from "../../support/eventually.ts";

// The bound under test.
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

export const ALL_KINDS: readonly ObjectKind[] = [
  "Pod",
  "Node",
  "Namespace",
  "Service",
  "EndpointSlice",
  "Ingress",
  "IngressClass",
  "Role",
  "ClusterRole",
  "RoleBinding",
  "ClusterRoleBinding",
];

/** A test API server and a store that follows it with short waits; both end with the test. */
export async function startLive({
  kinds = ["Pod", "Node"],
  namespaces,
  token = "",
  prepare = () => {},
  tuning = {},
  maxAnswerBytes = MAX_ANSWER_BYTES,
  ...serverOptions
}: TestApiServerOptions & {
  kinds?: readonly ObjectKind[];
  namespaces?: LiveClusterOptions["namespaces"];
  token?: string;
  prepare?: (server: TestApiServer) => void;
  tuning?: LiveClusterOptions["reflector"];
  maxAnswerBytes?: number;
} = {}) {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-live-"));
  const server = await TestApiServer.start(serverOptions);
  prepare(server);
  const kubeconfig = await loadKubeconfig(await server.writeKubeconfig(path.join(folder, "config"), token));
  const client = new ApiClient({ kubeconfig, dialTimeoutMs: 5_000, maxAnswerBytes });
  const store = new ClusterStore();
  const metrics = new Metrics({ withProcessMetrics: false });
  const lines: string[] = [];
  const log = (fields: Readonly<Record<string, unknown>>, message: string) =>
    void lines.push(`${message} ${JSON.stringify(fields)}`);
  const live = new LiveCluster({
    maxStateAgeMs: 60_000,
    client,
    store,
    kinds,
    namespaces,
    metrics: metrics.cluster,
    logger: { info: log, warn: log },
    reflector: { backoff: () => new Backoff({ firstMs: 10, maxMs: 100 }), ...tuning },
  });
  onTestFinished(async () => {
    await live.stop();
    client.close();
    await server.stop();
    await rm(folder, { recursive: true });
  });
  live.start();
  const synced = () => eventually("the cluster is known", () => live.unsynced.length === 0);
  const podNames = () =>
    store
      .listPods()
      .map(({ metadata }) => metadata.name)
      .join();
  const hasPods = (names: string) =>
    eventually(
      () => `pods ${names}, not ${podNames()}`,
      () => podNames() === names,
    );
  const metric = async (line: RegExp) => line.exec(await metrics.expose())?.[1];
  return { server, kubeconfig, client, store, live, metrics, metric, lines, synced, podNames, hasPods };
}

export const pod = (name: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name },
  spec: { nodeName: "n", containers: [{ name: "main", image: "i" }] },
  ...more,
});

/** A pod of this version in `default`. */
export const named = (name: string, resourceVersion: string) =>
  pod(name, { metadata: { name, namespace: "default", resourceVersion } });

/** Adds each of its pauses, in milliseconds, to `waits`. */
export class RecordedBackoff extends Backoff {
  readonly #waits: number[];

  constructor(waits: number[]) {
    super({ firstMs: 8, maxMs: 60_000, random: () => 0.5 });
    this.#waits = waits;
  }

  override next(atLeastMs?: number): number {
    const waitMs = super.next(atLeastMs);
    this.#waits.push(waitMs);
    return waitMs;
  }
}
