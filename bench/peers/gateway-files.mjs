// A configuration of Sluice as an operator would write it: one node, one pod, authentication and
// authorization on.
import { writeFileSync } from "node:fs";
import path from "node:path";

/**
 * Writes the configuration into `folder` and returns its path. With `tls`, both legs are encrypted.
 * With `webSocketPort`, the node listens there and accepts only WebSocket. `tracing` and
 * `recording` are sections of the configuration; `gracePeriod` is the sessions' grace period after
 * SIGTERM.
 */
export function writeGatewayFiles(folder, options) {
  const { upstreamPort, webSocketPort, port, adminPort, tls, tracing, recording, gracePeriod } = options;
  const file = (name) => path.join(folder, name);
  writeFileSync(file("tokens.csv"), "bench-token,bench,1\n");
  writeFileSync(
    file("cluster.yaml"),
    `apiVersion: v1
kind: Node
metadata: { name: node }
status:
  addresses: [{ type: InternalIP, address: 127.0.0.1 }]
  daemonEndpoints: { kubeletEndpoint: { Port: ${webSocketPort ?? upstreamPort} } }
---
apiVersion: v1
kind: Pod
metadata: { name: pod, namespace: default }
spec: { nodeName: node, containers: [{ name: c, image: x }] }
`,
  );
  const listenerTls =
    tls === undefined ? "" : `, tls: { certFile: ${tls.certFile}, keyFile: ${tls.keyFile} }`;
  const nodeLeg = tls === undefined ? "scheme: http" : "scheme: https, insecureSkipTLSVerify: true";
  writeFileSync(
    file("gateway.yaml"),
    `apiVersion: sluice.dev/v1alpha1
kind: GatewayConfiguration
listeners:
  apiServer: { address: 127.0.0.1, port: ${port}${listenerTls} }
  admin: { address: 127.0.0.1, port: ${adminPort} }
cluster: { manifests: [cluster.yaml] }
authentication: { tokenAuthFile: tokens.csv }
authorization: { mode: [AlwaysAllow] }
kubelet: { ${nodeLeg}, allowedAddresses: [127.0.0.0/8], streaming: { mode: ${webSocketPort === undefined ? "auto" : "websocket-only"} } }
# One load client is all clients here.
limits: { maxConcurrentSessions: 20000, maxConnectionsPerAddress: 30000 }
logging: { level: error }
${tracing ? `tracing: ${JSON.stringify(tracing)}\n` : ""}${recording ? `recording: ${JSON.stringify(recording)}\n` : ""}${gracePeriod ? `timeouts: { shutdownGracePeriod: ${gracePeriod} }\n` : ""}`,
  );
  return file("gateway.yaml");
}
