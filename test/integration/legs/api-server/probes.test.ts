import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { ClusterStore } from "../../../../src/cluster/cluster-store.ts";
import { parseManifests } from "../../../../src/cluster/manifests.ts";
import { parseConfiguration } from "../../../../src/config/configuration.ts";
import { endpointsOf } from "../../../../src/ingress/service-endpoints.ts";
import { Metrics } from "../../../../src/observability/metrics.ts";
import { buildProbes } from "../../../../src/probes/component.ts";
import { eventually } from "../../../support/eventually.ts";
import { defaultLocateOptions } from "../../../support/locate-options.ts";
import { closedPort } from "../../../support/misbehaving-servers.ts";

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

async function serve(status: () => number): Promise<number> {
  const server: Server = createServer((_, response) => response.writeHead(status()).end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

async function startProbes(configurationText: string, manifests: string) {
  const configuration = parseConfiguration(
    `apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\n${configurationText}`,
    "gateway.yaml",
  );
  const store = new ClusterStore();
  store.replaceAll(parseManifests([{ name: "cluster.yaml", text: manifests }]), new Date());
  const metrics = new Metrics();
  const reports: { name: string; isHealthy: boolean; reason: string }[] = [];
  const logged: string[] = [];
  const causes: unknown[] = [];
  const log = (fields: { cause?: unknown }, message: string) => {
    logged.push(message);
    causes.push(fields.cause);
  };
  const probes = await buildProbes(configuration, {
    store,
    nodes: { reportProbe: (name, isHealthy, reason) => reports.push({ name, isHealthy, reason }) },
    kubelet: {
      ...defaultLocateOptions,
      endpointOf: async ({ host, port }) => ({ host, port }),
    },
    metrics,
    logger: { debug: log, info: log, warn: log, error: log } as never,
  });
  stops.push(() => probes.stop());
  return { store, metrics, reports, logged, causes, probes };
}

describe("probes of this gateway's pods", () => {
  it("a pod that fails its readiness leaves the Service's endpoints, and comes back", async () => {
    let isReady = true;
    const port = await serve(() => (isReady ? 200 : 503));
    const { store, metrics, logged, causes, probes } = await startProbes(
      "podProbes: { nodeNames: [ours] }\n",
      `apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default }
spec:
  nodeName: ours
  containers:
  - name: main
    image: web
    ports: [{ name: http, containerPort: ${port} }]
    readinessProbe: { httpGet: { port: http }, periodSeconds: 1, failureThreshold: 1 }
status: { phase: Running, podIP: 127.0.0.1, containerStatuses: [{ name: main, image: web, imageID: "", ready: true, restartCount: 0, state: { running: {} } }] }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: default }
spec: { selector: { app: web }, ports: [{ port: 80, targetPort: http }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: default, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: ${port} }]
endpoints: [{ addresses: [127.0.0.1], conditions: { ready: true }, targetRef: { kind: Pod, name: web } }]
`,
    );
    const readyAddresses = () => {
      const slices = store.list("EndpointSlice", "default");
      const found = endpointsOf(store.get("Service", "default", "web"), slices, 80);
      return typeof found === "string" ? -1 : found.addresses.length;
    };
    const condition = () =>
      store.getPod("default", "web")?.status?.conditions?.find(({ type }) => type === "Ready")?.status;
    await eventually("not ready at first", () => condition() === "False" || condition() === "True");
    await eventually("ready", () => condition() === "True" && readyAddresses() === 1);
    isReady = false;
    await eventually("out of the endpoints", () => condition() === "False" && readyAddresses() === 0);
    expect(logged).toContain("Readiness probe failed");
    expect(causes).toContain("HTTP status 503");
    expect(probes.listProbes()).toMatchObject([
      {
        pod: "web",
        container: "main",
        probe: "Readiness",
        result: "Failure",
        lastFailure: { cause: "HTTP status 503" },
      },
    ]);
    isReady = true;
    await eventually("back", () => condition() === "True" && readyAddresses() === 1);
    expect(await metrics.expose()).toMatch(
      /prober_probe_total\{probe_type="Readiness",container="main",pod="web",namespace="default",pod_uid="[^"]+",result="failed"\} \d+/,
    );
  });
});

describe("probes of nodes and gateways", () => {
  const node = (name: string, port: number) => `apiVersion: v1
kind: Node
metadata: { name: ${name} }
status: { addresses: [{ type: InternalIP, address: 127.0.0.1 }], daemonEndpoints: { kubeletEndpoint: { Port: ${port} } } }
---
`;

  it("a dead node is told to the circuit breaker, with the reason, and again when it is back", async () => {
    let status = 500;
    const alive = await serve(() => 200);
    const sick = await serve(() => status);
    const settings = "periodSeconds: 1, failureThreshold: 1";
    const { reports } = await startProbes(
      `upstreamProbes: { nodes: { httpGet: { path: /healthz }, ${settings} } }\n`,
      node("alive", alive) + node("sick", sick),
    );
    await eventually("a report", () => reports.length > 0);
    expect(reports[0]).toEqual({
      name: "sick",
      isHealthy: false,
      reason: "Liveness probe failed: HTTP probe failed with statuscode: 500",
    });
    status = 200;
    await eventually("it is back", () => reports.at(-1)?.isHealthy === true);
    expect(reports.some(({ name }) => name === "alive")).toBe(false);
  });

  it("a gateway that does not answer is no longer healthy", async () => {
    const dead = await closedPort();
    const alive = await serve(() => 200);
    const { probes } = await startProbes(
      `upstreamProbes: { gateways: { periodSeconds: 1, failureThreshold: 1 } }
listeners:
  ingress:
    streamingGateways:
    - { name: dead, url: "http://127.0.0.1:${dead}" }
    - { name: alive, url: "http://127.0.0.1:${alive}" }
`,
      "",
    );
    await eventually("the dead one is found", () => !probes.isGatewayHealthy("dead"));
    expect(probes.isGatewayHealthy("alive")).toBe(true);
    expect(probes.isGatewayHealthy("unknown")).toBe(true);
  });
});
