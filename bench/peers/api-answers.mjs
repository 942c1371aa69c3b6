// The API server of bench/api-requests.mjs, over TLS with HTTP/1.1 and HTTP/2: serves a pod, and a
// list of 5,000 pods. Prints `listening PORT`.
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";

const { certFile, keyFile } = JSON.parse(process.argv[2]);
const PODS = 5_000;
const podOf = (index) => ({
  kind: "Pod",
  apiVersion: "v1",
  metadata: { name: `web-${index}`, namespace: "default", uid: `uid-${index}`, labels: { app: "web" } },
  spec: {
    nodeName: "node",
    containers: [{ name: "main", image: "web", env: [{ name: "TEXT", value: "x".repeat(1_600) }] }],
  },
  status: { phase: "Running", podIP: "10.0.0.1" },
});
const pod = Buffer.from(JSON.stringify(podOf(0)));
const list = Buffer.from(
  JSON.stringify({
    kind: "PodList",
    apiVersion: "v1",
    items: Array.from({ length: PODS }, (_, index) => podOf(index)),
  }),
);
const tls = { cert: readFileSync(certFile), key: readFileSync(keyFile), allowHTTP1: true };
const server = createSecureServer(tls, (request, response) => {
  const body = request.url.endsWith("/pods") ? list : pod;
  request.resume();
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": body.length,
    "audit-id": "b1f6",
  });
  response.end(body);
});
server.on("session", (session) => session.on("error", () => {}));
server.listen(0, "127.0.0.1", () => console.log(`listening ${server.address().port}`));
