import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** A request as the conformance suite's echo server describes it. */
export interface EchoedRequest {
  readonly path: string;
  readonly host: string;
  readonly method: string;
  readonly proto: string;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly service: string;
  readonly pod: string;
}

export interface EchoPod {
  readonly service: string;
  readonly pod: string;
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * One pod of a Service: answers with the request, in the JSON of the ingress conformance suite's
 * echo server, without a `Server` line.
 */
export async function startEchoPod(service: string, pod: string): Promise<EchoPod> {
  const server = createServer((request, response) => {
    const body = Buffer.from(JSON.stringify(echoOf(request, service, pod), undefined, 2));
    request.resume();
    response.writeHead(200, {
      "Content-Type": "application/json",
      "Content-Length": body.byteLength,
      "X-Content-Type-Options": "nosniff",
    });
    response.end(body);
  });
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  const port = await listen(server);
  return {
    service,
    pod,
    port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

function echoOf(request: IncomingMessage, service: string, pod: string): EchoedRequest {
  const headers: Record<string, string[]> = {};
  for (let index = 0; index + 1 < request.rawHeaders.length; index += 2) {
    const name = (request.rawHeaders[index] as string)
      .toLowerCase()
      .replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
    headers[name] = [...(headers[name] ?? []), request.rawHeaders[index + 1] as string];
  }
  return {
    path: request.url ?? "",
    host: request.headers.host ?? "",
    method: request.method ?? "",
    proto: `HTTP/${request.httpVersion}`,
    headers,
    service,
    pod,
  };
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}
