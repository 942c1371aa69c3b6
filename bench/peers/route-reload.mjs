// The Ingress listener with a cluster of many Ingresses that can be changed: like updates from a
// watch, without an API server.

import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { SessionClock } from "@sluice/client/internal/net/session-clock";
import { ClusterStore } from "../../dist/src/cluster/cluster-store.js";
import { defaultConfiguration } from "../../dist/src/config/configuration.js";
import { createIngressServers } from "../../dist/src/ingress/ingress-servers.js";
import { RouteController } from "../../dist/src/ingress/route-controller.js";
import { ServiceBalancer } from "../../dist/src/ingress/service-balancer.js";
import { EdgeRules } from "../../dist/src/listeners/edge-rules.js";
import { AddressRules } from "../../dist/src/net/address-rules.js";
import { createLogger } from "../../dist/src/observability/logger.js";
import { Metrics } from "../../dist/src/observability/metrics.js";
import { Sessions } from "../../dist/src/sessions/sessions.js";

const { upstreamPort, port, ingresses } = JSON.parse(process.argv[2]);
const configuration = defaultConfiguration();
const cluster = new ClusterStore({ firstResourceVersion: 1 });
const networking = "networking.k8s.io/v1";
cluster.upsert({
  apiVersion: networking,
  kind: "IngressClass",
  metadata: { name: "sluice" },
  spec: { controller: "sluice.dev/ingress-controller" },
});
cluster.upsert({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "app", namespace: "default" },
  spec: { ports: [{ port: 80 }] },
});
cluster.upsert({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name: "app-1", namespace: "default", labels: { "kubernetes.io/service-name": "app" } },
  addressType: "IPv4",
  endpoints: [{ addresses: ["127.0.0.1"] }],
  ports: [{ port: upstreamPort }],
});
const backend = { service: { name: "app", port: { number: 80 } } };
const ingress = (index, path) => ({
  apiVersion: networking,
  kind: "Ingress",
  metadata: { name: `ingress-${index}`, namespace: "default" },
  spec: {
    ingressClassName: "sluice",
    rules: [{ host: `host-${index}.example.com`, http: { paths: [{ path, pathType: "Prefix", backend }] } }],
  },
});
for (let index = 0; index < ingresses; index++) cluster.upsert(ingress(index, "/"));

const { certPem: cert, keyPem: key } = await createSelfSignedCertificate(["bench"], "bench", "rsa");
let reloads = 0;
const controller = await RouteController.start({
  cluster,
  classes: {
    controllerName: "sluice.dev/ingress-controller",
    legacyClassName: undefined,
    servesWithoutClass: false,
  },
  onActive: () => {
    reloads += 1;
  },
});
const metrics = new Metrics();
const servers = createIngressServers(
  {
    clock: new SessionClock(),
    sessions: new Sessions(1000),
    timeouts: configuration.timeouts,
    bandwidth: undefined,
    routes: () => controller.routes,
    balancer: new ServiceBalancer({
      cluster,
      addressRules: new AddressRules(["127.0.0.0/8"]),
      dialTimeoutMs: 1000,
    }),
    streamingGateways: new Map(),
    edge: new EdgeRules(configuration.edge),
    limits: configuration.limits,
    metrics: metrics.ingress,
    onConnectionRefused: () => {},
    logger: createLogger({ level: "error" }),
  },
  { defaultTls: { cert, key }, certificatesFor: (name) => controller.certificatesFor(name) },
);
servers.plain.listen(port, "127.0.0.1", () => console.log("ready"));

/**
 * The line `change` on stdin changes one Ingress, which recompiles all; `count` prints the number
 * of recompilations.
 */
process.stdin.setEncoding("utf8");
let changes = 0;
process.stdin.on("data", (text) => {
  for (const line of text.trim().split("\n")) {
    if (line === "change") cluster.upsert(ingress(changes % (ingresses - 1), `/v${++changes}`));
    else console.log(`reloads ${reloads}`);
  }
});
