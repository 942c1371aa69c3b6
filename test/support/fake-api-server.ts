import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { refuseUpgrade, spliceUpgrade } from "./upgrade-splicer.ts";

export interface FakeApiServer {
  url: string;
  close(): Promise<void>;
}

/**
 * The least of an API server that kubectl needs before it streams to one pod, without a gateway:
 * upgrades are spliced to the node unchanged. Shows that a node works before Sluice is in between.
 */
export async function startFakeApiServer(
  pod: { name: string; container: string },
  node: { host: string; port: number },
) {
  const sockets = new Set<Duplex>();
  const server = http.createServer((request, response) => {
    const answer = documentAt(new URL(request.url ?? "/", "http://api").pathname, pod);
    response.writeHead(answer ? 200 : 404, { "content-type": "application/json" });
    response.end(
      JSON.stringify(answer ?? { kind: "Status", apiVersion: "v1", status: "Failure", code: 404 }),
    );
  });
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("upgrade", (request: IncomingMessage, client: Duplex, head: Buffer) => {
    client.on("error", () => client.destroy());
    const path = kubeletPath(new URL(request.url ?? "/", "http://api"), pod.container);
    if (path === undefined) refuseUpgrade(client, 404, "Not Found", "404 page not found");
    else spliceUpgrade(request, client, head, { ...node, path });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close } satisfies FakeApiServer;
}

function documentAt(path: string, pod: { name: string; container: string }): object | undefined {
  const pods = {
    name: "pods",
    singularName: "pod",
    namespaced: true,
    kind: "Pod",
    verbs: ["get", "list"],
    shortNames: ["po"],
  };
  switch (path) {
    case "/api":
      return { kind: "APIVersions", versions: ["v1"] };
    case "/apis":
      return { kind: "APIGroupList", apiVersion: "v1", groups: [] };
    case "/api/v1":
      return { kind: "APIResourceList", groupVersion: "v1", resources: [pods] };
    case `/api/v1/namespaces/default/pods/${pod.name}`:
      return {
        kind: "Pod",
        apiVersion: "v1",
        metadata: { name: pod.name, namespace: "default", uid: "pod-uid" },
        spec: { containers: [{ name: pod.container, image: "test", stdin: true }] },
        status: { phase: "Running" },
      };
    default:
      return undefined;
  }
}

/**
 * The URL that kube-apiserver builds: other names for the options, "1" for true, and only options
 * that are set.
 */
function kubeletPath(url: URL, defaultContainer: string): string | undefined {
  const match = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/(exec|attach|portforward)$/.exec(
    url.pathname,
  );
  if (!match) return undefined;
  const [, namespace, pod, subresource] = match;
  const query = new URLSearchParams();
  if (subresource === "portforward") return `/portForward/${namespace}/${pod}`;
  const names = { stdin: "input", stdout: "output", stderr: "error", tty: "tty" };
  for (const [from, to] of Object.entries(names))
    if (url.searchParams.get(from) === "true") query.set(to, "1");
  for (const word of url.searchParams.getAll("command")) query.append("command", word);
  return `/${subresource}/${namespace}/${pod}/${url.searchParams.get("container") ?? defaultContainer}?${query}`;
}
