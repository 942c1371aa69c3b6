import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import path from "node:path";
import type { TLSSocket } from "node:tls";
import type { ChartedCluster } from "./charted-cluster.ts";
import { ADDRESSES, METRICS_SERVICE, subjectOf } from "./credentials.ts";
import { applyObjects } from "./start-cluster.ts";

const METRIC = "sluice_streaming_active_sessions";
const GROUP = "custom.metrics.k8s.io";
const VERSION = `${GROUP}/v1beta2`;
const METRIC_PATH = new RegExp(`^/apis/${VERSION}/namespaces/([^/]+)/pods/\\*/${METRIC}$`);
const SERIES = new RegExp(`^${METRIC}(?:{[^}]*})? (\\S+)$`, "gm");
/** Of the admin listener in the chart. */
const ADMIN_PORT = 8081;

interface RunningPod {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly status: { readonly podIP?: string };
}

/**
 * An API behind the cluster's own, as prometheus-adapter is: METRIC of each pod, from the pod's /metrics at the moment. It answers API
 * servers alone. Returns its end.
 */
export async function serveSessionMetrics(charted: ChartedCluster): Promise<() => Promise<void>> {
  const { cluster, kubectlProgram } = charted;
  const file = (name: string): Buffer => readFileSync(path.join(cluster.credentials, name));
  const tls = { cert: file("session-metrics.crt"), key: file("session-metrics.key") };
  const server = createServer({ ...tls, ca: file("ca.crt"), requestCert: true }, (request, response) => {
    const { subject } = (request.socket as TLSSocket).getPeerCertificate();
    answer(charted, request).then(
      (body) => {
        const isKnown = body !== undefined && subject.CN === subjectOf("front-proxy-client");
        response.writeHead(isKnown ? 200 : 404, { "content-type": "application/json" });
        response.end(JSON.stringify(body ?? {}));
      },
      ({ message }: Error) => response.writeHead(500).end(message),
    );
  });
  server.listen(0, ADDRESSES.controlPlane);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const [name = "", namespace = ""] = METRICS_SERVICE.split(".");
  await applyObjects(kubectlProgram, cluster.adminKubeconfig, [
    // The one kind of Service that API servers reach without kube-proxy.
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, namespace },
      spec: { type: "ExternalName", externalName: ADDRESSES.controlPlane },
    },
    {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: `v1beta2.${GROUP}` },
      spec: {
        group: GROUP,
        version: "v1beta2",
        groupPriorityMinimum: 100,
        versionPriority: 100,
        caBundle: file("ca.crt").toString("base64"),
        service: { name, namespace, port },
      },
    },
  ]);
  await charted.kubectl("wait", "--for=condition=Available", `apiservice/v1beta2.${GROUP}`, "--timeout=60s");
  return async () => {
    await charted.kubectl("delete", `apiservice/v1beta2.${GROUP}`, `service/${name}`);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
}

/** Undefined: nothing is there. */
async function answer(charted: ChartedCluster, { url = "" }: IncomingMessage): Promise<object | undefined> {
  const { pathname, searchParams } = new URL(url, "https://any");
  const version = { groupVersion: VERSION, version: "v1beta2" };
  const group = { name: GROUP, versions: [version], preferredVersion: version };
  if (pathname === "/apis") return { kind: "APIGroupList", apiVersion: "v1", groups: [group] };
  if (pathname === `/apis/${GROUP}`) return { kind: "APIGroup", apiVersion: "v1", ...group };
  if (pathname === `/apis/${VERSION}`) {
    const resource = { singularName: "", namespaced: true, kind: "MetricValueList", verbs: ["get"] };
    const resources = [{ name: `pods/${METRIC}`, ...resource }];
    return { kind: "APIResourceList", apiVersion: "v1", groupVersion: VERSION, resources };
  }
  const namespace = METRIC_PATH.exec(decodeURIComponent(pathname))?.[1];
  if (namespace === undefined) return undefined;
  const selector = `--selector=${searchParams.get("labelSelector") ?? ""}`;
  const list = await charted.kubectl("-n", namespace, "get", "pods", selector, "--output=json");
  const { items } = JSON.parse(list) as { items: RunningPod[] };
  const values = await Promise.all(items.map(sessionsOf));
  return { kind: "MetricValueList", apiVersion: VERSION, metadata: {}, items: values.flat() };
}

/** None for a pod that does not answer. */
async function sessionsOf({ metadata, status }: RunningPod): Promise<object[]> {
  const { podIP } = status;
  if (podIP === undefined) return [];
  try {
    const signal = AbortSignal.timeout(2_000);
    const response = await fetch(`http://${podIP}:${ADMIN_PORT}/metrics`, { signal });
    const sessions = [...(await response.text()).matchAll(SERIES)].map(([, value]) => Number(value));
    const { name, namespace } = metadata;
    return [
      {
        describedObject: { kind: "Pod", apiVersion: "v1", name, namespace },
        metric: { name: METRIC },
        timestamp: new Date().toISOString().replace(/\.\d+/, ""),
        value: String(sessions.reduce((sum, each) => sum + each, 0)),
      },
    ];
  } catch {
    return [];
  }
}
