import { once } from "node:events";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { createHttp1Server } from "@sluice/client/internal/http/downstream/http1-server";
import { HTTP_BOUNDS } from "./limits.ts";

/** The servers inside a demo pod. */
export interface DemoPodServers {
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
