import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { headerListOf } from "../../packages/client/src/http/header-list.ts";

/**
 * An API server with objects that a test sets. Streaming subresources are spliced to one loopback
 * port for each pod.
 */
export class StreamingApi {
  readonly kubeconfig: string;
  /** Keyed by path without the query; a list is an object, too. */
  readonly objects = new Map<string, object>();
  /** The port that each pod's sessions go to. */
  readonly podPorts = new Map<string, number>();
  readonly requests: string[] = [];
  readonly #folder = mkdtempSync(path.join(tmpdir(), "sluice-api-"));
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  constructor() {
    this.kubeconfig = path.join(this.#folder, "kubeconfig");
  }

  /** Starts again on the same port after `stop`. */
  async start(): Promise<void> {
    const server = createServer((request, response) => {
      this.requests.push(request.url ?? "");
      const { pathname } = new URL(request.url ?? "/", "http://api");
      const object = this.objects.get(pathname);
      response.writeHead(object === undefined ? 404 : 200, { "Content-Type": "application/json" });
      const name = pathname.split("/").slice(-2).join(" ");
      response.end(
        JSON.stringify(
          object ?? { kind: "Status", status: "Failure", reason: "NotFound", message: `${name} not found` },
        ),
      );
    });
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => socket.destroy());
      socket.once("close", () => this.#sockets.delete(socket));
    });
    server.on("upgrade", (request, client: Socket) => {
      const pod = /\/pods\/([^/]+)\//.exec(request.url ?? "")?.[1] ?? "";
      const node = connect({ host: "127.0.0.1", port: this.podPorts.get(pod) ?? 1, allowHalfOpen: true });
      this.#sockets.add(node);
      node.on("error", () => client.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"));
      node.once("connect", () => {
        const lines = headerListOf(request.rawHeaders).map(([name, value]) => `${name}: ${value}\r\n`);
        node.write(`${request.method} ${request.url} HTTP/1.1\r\n${lines.join("")}\r\n`);
        client.pipe(node).pipe(client);
        client.once("close", () => node.destroy());
        node.once("close", () => client.destroy());
      });
    });
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
    const cluster = { name: "c", cluster: { server: `http://127.0.0.1:${this.#port}` } };
    const context = { name: "c", context: { cluster: "c", user: "u", namespace: "default" } };
    const users = [{ name: "u", user: { token: "token" } }];
    const config = { apiVersion: "v1", kind: "Config", "current-context": "c" };
    writeFileSync(
      this.kubeconfig,
      JSON.stringify({ ...config, clusters: [cluster], contexts: [context], users }),
    );
  }

  /** Stops as if it were killed. */
  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    server.close();
    await once(server, "close");
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Sets the pods in the namespace `default` (ready by default), with the label `app: web`. */
  setPods(pods: readonly { name: string; isReady?: boolean; phase?: string; port: number }[]): void {
    const items = pods.map(({ name, isReady = true, phase = "Running", port }) => {
      this.podPorts.set(name, port);
      return {
        metadata: { name, namespace: "default", uid: `${name}-${port}`, labels: { app: "web" } },
        spec: { containers: [{ name: "main", ports: [{ name: "http", containerPort: 8080 }] }] },
        status: { phase, conditions: [{ type: "Ready", status: isReady ? "True" : "False" }] },
      };
    });
    for (const known of this.objects.keys()) if (known.includes("/pods/")) this.objects.delete(known);
    const collection = "/api/v1/namespaces/default/pods";
    for (const item of items) this.objects.set(`${collection}/${item.metadata.name}`, item);
    this.objects.set(collection, { kind: "PodList", items });
  }
}
