import { once } from "node:events";
import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type CriClient, CriError, GRPC_STATUS, type StreamOptions } from "./cri.ts";
import { refuseUpgrade, spliceUpgrade } from "./upgrade-splicer.ts";

/** A pod on the node, as the kubelet would know it. */
export interface AdapterPod {
  namespace: string;
  name: string;
  sandboxId: string;
  /** Maps container names to the runtime's ids. */
  containers: Readonly<Record<string, string>>;
}

export interface CriNodeAdapterOptions {
  cri: CriClient;
  pods: readonly AdapterPod[];
  /** The certificate, since kubelets serve HTTPS. Absent: the adapter serves plain HTTP. */
  tls?: { key: string; cert: string };
}

export interface CriNodeAdapter {
  host: string;
  port: number;
  /**
   * Every upgrade that was passed on, in order: `POST SPDY/3.1 exec`. Shows by which path a request
   * came.
   */
  upgrades: readonly string[];
  close(): Promise<void>;
}

/**
 * The smallest possible kubelet in front of a CRI runtime. One CRI call for each request turns
 * `/exec/{ns}/{pod}/{container}`, `/attach/...` and `/portForward/{ns}/{pod}` into a streaming URL,
 * and the upgrade is spliced to it.
 */
export async function startCriNodeAdapter({
  cri,
  pods,
  tls,
}: CriNodeAdapterOptions): Promise<CriNodeAdapter> {
  const upgrades: string[] = [];
  const clients = new Set<Duplex>();
  const server = tls ? https.createServer(tls) : http.createServer();
  server.on("request", (_request, response) => {
    response.writeHead(500, { "content-type": "text/plain" }).end("Upgrade request required");
  });
  server.on("upgrade", async (request: IncomingMessage, client: Duplex, head: Buffer) => {
    clients.add(client);
    client.once("close", () => clients.delete(client));
    client.on("error", () => client.destroy());
    try {
      const stream = await mintStream(cri, pods, request.url ?? "/");
      const { hostname, port, pathname } = new URL(stream.url);
      upgrades.push(`${request.method} ${request.headers.upgrade} ${stream.kind}`);
      spliceUpgrade(request, client, head, { host: hostname, port: Number(port), path: pathname });
    } catch (error) {
      const { code, reason } = httpStatusOf(error);
      refuseUpgrade(client, code, reason, (error as Error).message);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    upgrades,
    close: async () => {
      for (const client of clients) client.destroy();
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

class RefusedRequest extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

async function mintStream(cri: CriClient, pods: readonly AdapterPod[], requestUrl: string) {
  const { pathname, searchParams: query } = new URL(requestUrl, "http://node");
  const [kind = "", namespace, podName, containerName = ""] = pathname
    .split("/")
    .slice(1)
    .map(decodeURIComponent);
  const pod = pods.find((candidate) => candidate.namespace === namespace && candidate.name === podName);
  if (!pod) throw new RefusedRequest(404, "pod does not exist");
  if (kind === "portForward") {
    return { kind, url: await cri.portForwardUrl(pod.sandboxId, query.getAll("port").map(Number)) };
  }
  const containerId = pod.containers[containerName];
  if (containerId === undefined) throw new RefusedRequest(404, `container not found ("${containerName}")`);
  const streams = streamOptionsOf(query);
  if (kind === "exec") return { kind, url: await cri.execUrl(containerId, query.getAll("command"), streams) };
  if (kind === "attach") return { kind, url: await cri.attachUrl(containerId, streams) };
  throw new RefusedRequest(404, "404 page not found");
}

/**
 * The kubelet accepts only "1" for true, and drops stderr if a terminal is requested: the CRI would
 * refuse both.
 */
function streamOptionsOf(query: URLSearchParams): StreamOptions {
  const tty = query.get("tty") === "1";
  const streams = {
    tty,
    stdin: query.get("input") === "1",
    stdout: query.get("output") === "1",
    stderr: query.get("error") === "1" && !tty,
  };
  if (!streams.stdin && !streams.stdout && !streams.stderr) {
    throw new RefusedRequest(400, "you must specify at least 1 of stdin, stdout, stderr");
  }
  return streams;
}

function httpStatusOf(error: unknown): { code: number; reason: string } {
  const code =
    error instanceof RefusedRequest ? error.code : error instanceof CriError ? codeOf(error.grpcStatus) : 500;
  return { code, reason: http.STATUS_CODES[code] ?? "Error" };
}

/** Maps the runtime's refusals to HTTP, as the kubelet does. */
function codeOf(grpcStatus: number): number {
  if (grpcStatus === GRPC_STATUS.NOT_FOUND) return 404;
  return grpcStatus === GRPC_STATUS.RESOURCE_EXHAUSTED ? 429 : 500;
}
