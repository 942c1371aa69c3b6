import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, it } from "vitest";
import { resourceOfKind } from "../../support/api-server/resources.ts";
import { TestApiServer } from "../../support/api-server/test-api-server.ts";
import { eventually } from "../../support/eventually.ts";
import { FrontDoor } from "../../support/front-door.ts";
import { closeServer, listen } from "../../support/http/loopback.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

it("routes by a live API's Ingresses, writes their status there, and follows a Service to no pods and back", async () => {
  const backend = createServer((_, response) => response.end("from the backend"));
  const port = await listen(backend);
  closing.push(() => closeServer(backend, []));
  const api = await TestApiServer.start();
  closing.push(() => api.stop());
  const networking = { apiVersion: "networking.k8s.io/v1" };
  api.apply({
    ...networking,
    kind: "IngressClass",
    metadata: { name: "sluice" },
    spec: { controller: "sluice.dev/ingress-controller" },
  });
  api.apply({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "web" },
    spec: { ports: [{ port: 80, targetPort: port, protocol: "TCP" }] },
  });
  const slice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "web-1", labels: { "kubernetes.io/service-name": "web" } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["127.0.0.1"], conditions: { ready: true } }],
    ports: [{ name: "", port, protocol: "TCP" }],
  };
  api.apply(slice);
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-live-ingress-"));
  closing.push(() => rm(folder, { recursive: true }));
  const kubeconfig = await api.writeKubeconfig(path.join(folder, "kubeconfig"));
  const door = await FrontDoor.start([], {}, { cluster: { kubeconfig } });
  closing.push(() => door.stop());

  const backendOf = { service: { name: "web", port: { number: 80 } } };
  api.apply({
    ...networking,
    kind: "Ingress",
    metadata: { name: "web" },
    spec: {
      ingressClassName: "sluice",
      rules: [{ http: { paths: [{ path: "/", pathType: "Prefix", backend: backendOf }] } }],
    },
  });
  const get = async () => (await fetch(`http://127.0.0.1:${door.httpPort}/`)).text();
  await eventually("it is routed", async () => (await get()) === "from the backend");
  const addresses = () => {
    const { status } = api.store.get(resourceOfKind("Ingress"), "default", "web") ?? { status: undefined };
    return JSON.stringify(status);
  };
  const isPublished = () => addresses() === '{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}';
  await eventually(addresses, isPublished);

  const status = async () => (await fetch(`http://127.0.0.1:${door.httpPort}/`)).status;
  // What the EndpointSlice controller leaves of a Service without pods.
  api.apply({ ...slice, endpoints: null, ports: null });
  await eventually("a Service without pods is answered 503", async () => (await status()) === 503);
  api.apply(slice);
  await eventually("it is served again", async () => (await status()) === 200);
});
