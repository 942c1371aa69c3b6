import { once } from "node:events";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { createHttp1Server } from "@sluice/client/internal/http/downstream/http1-server";
import { createFakeNode, type FakeNode, type FakeNodeOptions } from "./fake-node.ts";
import type { FakePod } from "./fake-pod.ts";
import { HTTP_BOUNDS } from "./limits.ts";

interface RunFakeNodeOptions extends Omit<FakeNodeOptions, "pods"> {
  /** Each pod gets an HTTP server on port 80 and TCP echo on port 7. */
  readonly pods: readonly Omit<FakePod, "ports">[];
}

/** The servers inside a demo pod. */
interface DemoPodServers {
  /** For FakePod.ports: HTTP as port 80, TCP echo as port 7. */
  readonly ports: ReadonlyMap<number, number>;
  close(): Promise<void>;
}

const HTTP_PORT = 80;
const ECHO_PORT = 7;

export async function createDemoPodServers(podName: string): Promise<DemoPodServers> {
  const http = createHttp1Server(HTTP_BOUNDS, {
    onRequest: (_request, response) => {
      response.setHeader("Content-Type", "text/html; charset=utf-8");
      response.end(`<!doctype html>\n<title>${podName}</title>\n<h1>Hello from pod ${podName}</h1>\n`);
    },
  });
  const sockets = new Set<Socket>();
  const echo = createTcpServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    socket.pipe(socket);
  });
  return {
    ports: new Map([
      [HTTP_PORT, await listenOnLoopback(http)],
      [ECHO_PORT, await listenOnLoopback(echo)],
    ]),
    async close() {
      const closed = Promise.all([once(http, "close"), once(echo, "close")]);
      http.close();
      http.closeAllConnections();
      echo.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function listenOnLoopback(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Starts a node and the servers in its pods, for a process of its own. `close` ends both. */
export async function runFakeNode(options: RunFakeNodeOptions): Promise<FakeNode> {
  const servers: DemoPodServers[] = [];
  const closeServers = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()));
  };
  try {
    const pods: FakePod[] = [];
    for (const pod of options.pods) {
      const server = await createDemoPodServers(pod.name);
      servers.push(server);
      pods.push({ ...pod, ports: server.ports });
    }
    const node = await createFakeNode({ ...options, pods });
    return {
      name: node.name,
      address: node.address,
      port: node.port,
      declaredFeatures: node.declaredFeatures,
      get sessionCount() {
        return node.sessionCount;
      },
      async close() {
        await node.close();
        await closeServers();
      },
    };
  } catch (error) {
    await closeServers();
    throw error;
  }
}
