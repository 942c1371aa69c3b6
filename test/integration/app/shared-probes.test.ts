import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { parseManifests } from "../../../src/cluster/manifests.ts";
import { parseConfiguration } from "../../../src/config/configuration.ts";
import { Metrics } from "../../../src/observability/metrics.ts";
import type { ProbeUpdate } from "../../../src/probes/probe-update.ts";
import { startProbes } from "../../../src/probes/shared-probes-component.ts";
import { eventually } from "../../support/eventually.ts";
import { defaultLocateOptions } from "../../support/locate-options.ts";

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

async function serve(): Promise<number> {
  const server: Server = createServer((_, response) => response.end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

const manifests = (port: number) => `apiVersion: v1
kind: Node
metadata: { name: node }
status: { addresses: [{ type: InternalIP, address: 127.0.0.1 }], daemonEndpoints: { kubeletEndpoint: { Port: ${port} } } }
---
apiVersion: v1
kind: Pod
metadata: { name: web, namespace: default, uid: u1 }
spec: { nodeName: node, containers: [{ name: main, image: x }] }
status: { phase: Running }
`;

async function build(port: number) {
  const configuration = parseConfiguration(
    `apiVersion: sluice.dev/v1alpha1
kind: GatewayConfiguration
listeners: { ingress: { streamingGateways: [{ name: far, url: "http://127.0.0.1:${port}" }] } }
upstreamProbes:
  nodes: { httpGet: { path: / }, periodSeconds: 1, failureThreshold: 1 }
  gateways: { httpGet: { path: / }, periodSeconds: 1, failureThreshold: 1 }
`,
    "gateway.yaml",
  );
  const store = new ClusterStore();
  const readAgain = () =>
    store.replaceAll(parseManifests([{ name: "cluster.yaml", text: manifests(port) }]), new Date());
  readAgain();
  const reported: [string, boolean, string][] = [];
  const shared: ProbeUpdate[] = [];
  const log = () => {};
  const probes = await startProbes(
    configuration,
    {
      store,
      nodes: { reportProbe: (...report) => reported.push(report) },
      kubelet: { ...defaultLocateOptions, endpointOf: async ({ host, port: at }) => ({ host, port: at }) },
      metrics: new Metrics(),
      logger: { debug: log, info: log, warn: log, error: log } as never,
    },
    (findings) => shared.push(...findings),
  );
  stops.push(() => void probes.stop());
  return { store, readAgain, reported, shared, probes };
}

const dead = (kind: "node" | "gateway", name: string): ProbeUpdate => ({
  kind,
  name,
  isHealthy: false,
  reason: "refused",
});
const back = (kind: "node" | "gateway", name: string) =>
  expect.objectContaining({ kind, name, isHealthy: true });

it("what another process found dead is dead here, and is found alive by whoever probes next", async () => {
  const { reported, shared, probes } = await build(await serve());
  expect(probes.isGatewayHealthy("far")).toBe(true);
  probes.learn([dead("gateway", "far"), dead("node", "node")]);
  expect(probes.isGatewayHealthy("far")).toBe(false);
  expect(reported).toEqual([["node", false, "refused"]]);
  await probes.begin(true);
  expect([probes.isGatewayHealthy("far"), shared]).toEqual([false, []]);
  await eventually("both are back", () => shared.length >= 2);
  expect(shared).toEqual(expect.arrayContaining([back("gateway", "far"), back("node", "node")]));
  expect([probes.isGatewayHealthy("far"), reported.at(-1)?.slice(0, 2)]).toEqual([true, ["node", true]]);
});

it("a pod's status that was learned outlives manifests that are read again, until the pod is said to be gone", async () => {
  const { store, readAgain, probes } = await build(await serve());
  const pod = { kind: "pod", namespace: "default", name: "web" } as const;
  const status = { phase: "Running", podIP: "10.0.0.9" };
  const address = () => store.getPod("default", "web")?.status?.podIP;
  probes.learn([{ ...pod, status }]);
  expect(address()).toBe("10.0.0.9");
  readAgain();
  await eventually("it is back", () => address() === "10.0.0.9");
  probes.learn([{ ...pod, status: undefined }]);
  readAgain();
  await new Promise(setImmediate);
  expect(address()).toBeUndefined();
});
