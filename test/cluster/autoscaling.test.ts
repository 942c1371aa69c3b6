import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { writeEvidence } from "../support/in-cluster-evidence.ts";
import { describeFull } from "../support/real-parts.ts";
import { ChartedCluster, IMAGE } from "./kubernetes/charted-cluster.ts";
import { balanceService, type ServiceBalancer } from "./kubernetes/service-balancer.ts";
import { ServiceEndpoints } from "./kubernetes/service-endpoints.ts";
import { serveSessionMetrics } from "./kubernetes/session-metrics-api.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";
import { NumberedLines } from "./upgrade-load.ts";

const NAMESPACE = "autoscaling";
const SESSIONS = 10;
/** Of each replica: ten sessions want three of them. */
const ACTIVE_SESSIONS = 4;
const VALUES = {
  "image.repository": IMAGE,
  "gateway.resources.requests.cpu": "10m",
  "gateway.config.workers": "1",
  "gateway.config.cluster.podDeletionCost": "true",
  "gateway.autoscaling.enabled": "true",
  "gateway.autoscaling.minReplicas": "1",
  "gateway.autoscaling.maxReplicas": "5",
  "gateway.autoscaling.activeSessions": `${ACTIVE_SESSIONS}`,
  // Longer than the replicas' costs may be old (POD_DELETION_COST_INTERVAL_MS).
  "gateway.autoscaling.scaleDown.stabilizationWindowSeconds": "40",
  "gateway.autoscaling.scaleDown.periodSeconds": "5",
};

interface Autoscaler {
  readonly status?: {
    readonly desiredReplicas?: number;
    readonly currentReplicas?: number;
    readonly conditions?: readonly { readonly type: string; readonly reason: string }[];
  };
}

interface Pod {
  readonly metadata: {
    readonly creationTimestamp: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly status: { readonly podIP: string };
}

/** Minutes of a node of its own, as the upgrade: SLUICE_FULL=1 has it. */
describeFull(["cluster", "helm"], "autoscaling in the cluster", () => {
  let charted: ChartedCluster;
  let endpoints: ServiceEndpoints;
  let gateway: ServiceBalancer;
  let stopMetrics: (() => Promise<void>) | undefined;
  let sessions: readonly NumberedLines[] = [];
  const rows: string[] = [];

  beforeAll(async () => {
    const cluster = inject("cluster") as ClusterAddresses;
    charted = await ChartedCluster.create(cluster);
    await charted.importImage();
    await charted.createNamespace(NAMESPACE, "restricted");
    stopMetrics = await serveSessionMetrics(charted);
    const set = Object.entries(VALUES).map(([name, value]) => `${name}=${value}`);
    await charted.helm(
      ...["install", "sluice", "sluice-0.1.0.tgz", "--namespace", NAMESPACE],
      ...["--set", set.join(","), "--wait", "--timeout", "300s"],
    );
    endpoints = await ServiceEndpoints.follow(cluster.adminKubeconfig);
    gateway = await balanceService(endpoints, [NAMESPACE, "sluice-gateway", 6443]);
  }, 600_000);
  afterAll(async () => {
    for (const session of sessions) session.stop();
    await gateway?.close();
    await endpoints?.close();
    await stopMetrics?.();
    await charted.remove(NAMESPACE);
  }, 120_000);

  const autoscaler = async (): Promise<Autoscaler> =>
    JSON.parse(await charted.kubectl("-n", NAMESPACE, "get", "hpa", "sluice-gateway", "--output=json"));
  /** Waits until the autoscaler has so many, and they are behind the Service. */
  const replicas = async (count: number, what: string): Promise<void> => {
    const startMs = performance.now();
    let last: Autoscaler = {};
    await eventually(
      () => `${count} replicas: ${JSON.stringify(last.status)}`,
      async () => {
        last = await autoscaler();
        const { desiredReplicas, currentReplicas } = last.status ?? {};
        const ready = endpoints.addresses(NAMESPACE, "sluice-gateway").length;
        return [desiredReplicas, currentReplicas, ready].every((found) => found === count);
      },
      { timeoutMs: 240_000, intervalMs: 500 },
    );
    rows.push(`| ${what} | ${count} | ${((performance.now() - startMs) / 1_000).toFixed(0)} |`);
  };

  const newestPod = async (): Promise<Pod> => {
    const list = ["get", "pods", "-l", "app.kubernetes.io/component=gateway", "--output=json"];
    const { items } = JSON.parse(await charted.kubectl("-n", NAMESPACE, ...list));
    return (items as Pod[])
      .toSorted((a, b) => a.metadata.creationTimestamp.localeCompare(b.metadata.creationTimestamp))
      .at(-1) as Pod;
  };

  it("follows the sessions up, and down again to the replica that still has one", async () => {
    await replicas(1, "no session");
    sessions = Array.from({ length: SESSIONS }, () => new NumberedLines(`https://127.0.0.1:${gateway.port}`));
    await replicas(Math.ceil(SESSIONS / ACTIVE_SESSIONS), `${SESSIONS} sessions`);
    const { conditions = [] } = (await autoscaler()).status ?? {};
    expect(conditions.find(({ type }) => type === "ScalingActive")?.reason).toBe("ValidMetricFound");
    // The newest one is the first to go, but for its session.
    const newest = await newestPod();
    const last = new NumberedLines(`https://${newest.status.podIP}:6443`);
    sessions = [...sessions, last];
    await eventually(
      "its cost is known",
      async () =>
        (await newestPod()).metadata.annotations?.["controller.kubernetes.io/pod-deletion-cost"] === "1",
      {
        timeoutMs: 60_000,
        intervalMs: 500,
      },
    );
    // Those that have begun stay where they are.
    for (const { sent, returned } of await Promise.all(
      sessions.filter((session) => session !== last).map((session) => session.finish()),
    )) {
      expect(returned).toBe(sent);
    }
    await replicas(1, "one session, on the newest replica");
    expect(endpoints.addresses(NAMESPACE, "sluice-gateway")).toEqual([newest.status.podIP]);
    const { sent, returned } = await last.finish();
    expect(returned).toBe(sent);
    expect(last.resumptions).toBe(0);
    writeEvidence(
      "autoscaling",
      `The chart's HorizontalPodAutoscaler (${ACTIVE_SESSIONS} sessions for each replica, 1 to 5), the cluster's own controller, and an API of custom.metrics.k8s.io\nthat reads \`sluice_streaming_active_sessions\` from the pods.\n\n| | replicas | seconds |\n|---|---|---|\n${rows.join("\n")}`,
    );
  }, 900_000);
});
