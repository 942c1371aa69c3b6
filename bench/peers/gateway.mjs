// Sluice itself, by a configuration as an operator would write it: plain HTTP on both legs, one node, one pod.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { startGateway } from "../../dist/src/app.js";
import { loadConfiguration } from "../../dist/src/config/load-configuration.js";

const upstreamPort = Number(process.argv[2]);
const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
writeFileSync(path.join(folder, "tokens.csv"), "bench-token,bench,1\n");
writeFileSync(
  path.join(folder, "cluster.yaml"),
  `apiVersion: v1
kind: Node
metadata: { name: node }
status:
  addresses: [{ type: InternalIP, address: 127.0.0.1 }]
  daemonEndpoints: { kubeletEndpoint: { Port: ${upstreamPort} } }
---
apiVersion: v1
kind: Pod
metadata: { name: pod, namespace: default }
spec: { nodeName: node, containers: [{ name: c, image: x }] }
`,
);
writeFileSync(
  path.join(folder, "gateway.yaml"),
  `apiVersion: sluice.dev/v1alpha1
kind: GatewayConfiguration
listeners:
  apiServer: { address: 127.0.0.1, port: 0 }
  admin: { address: 127.0.0.1, port: 0 }
cluster: { manifests: [cluster.yaml] }
authentication: { tokenAuthFile: tokens.csv }
kubelet: { scheme: http, allowedAddresses: [127.0.0.0/8] }
logging: { level: error }
`,
);
const gateway = await startGateway(await loadConfiguration(path.join(folder, "gateway.yaml")));
process.send(Number(new URL(gateway.apiServerUrl).port));
process.on("disconnect", () => process.exit());
