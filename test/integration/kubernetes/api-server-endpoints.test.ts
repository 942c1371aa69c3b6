import { it, onTestFinished } from "vitest";
import { ApiServerEndpoints } from "../../../src/kubernetes/api-server-endpoints.ts";
import { eventually } from "../../support/eventually.ts";
import { startLive } from "./live.ts";

const slice = (name: string, addresses: readonly string[]) => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name, namespace: "default", labels: { "kubernetes.io/service-name": name } },
  addressType: "IPv4",
  ports: [{ name: "https", port: 6443, protocol: "TCP" }],
  endpoints: addresses.map((address) => ({ addresses: [address] })),
});

it("API servers are where their own EndpointSlice says, as it changes, and no other", async () => {
  const { server, client, metrics } = await startLive({ kinds: [] });
  server.apply(slice("other", ["10.0.0.9"]));
  server.apply(slice("kubernetes", ["10.0.0.10", "10.0.0.11"]));
  const logger = { info: () => {}, warn: () => {} };
  const endpoints = new ApiServerEndpoints({ client, metrics: metrics.cluster, logger });
  onTestFinished(() => endpoints.stop());
  const places = () => endpoints.list().map(({ host, port }) => `${host}:${port}`);
  await eventually("they are listed", () => places().join() === "10.0.0.10:6443,10.0.0.11:6443");
  server.apply(slice("kubernetes", ["10.0.0.12"]));
  await eventually("a change is followed", () => places().join() === "10.0.0.12:6443");
});
