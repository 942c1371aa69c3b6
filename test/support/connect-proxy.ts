import { createServer as createHttpServer, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { connect, type Socket } from "node:net";
import { closeServer, listen } from "./http/loopback.ts";
import type { TestCertificate } from "./test-certificates.ts";

export interface ConnectProxy {
  readonly port: number;
  /** host:port of each CONNECT, in order. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

export interface ConnectProxyOptions {
  /** Serves TLS with it. */
  readonly certificate?: TestCertificate;
  /** The `user:password` that the proxy requires. */
  readonly credentials?: string;
}

/** An HTTP proxy that supports only CONNECT. */
export async function startConnectProxy(options: ConnectProxyOptions = {}): Promise<ConnectProxy> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const { certificate, credentials } = options;
  const server: Server = certificate === undefined ? createHttpServer() : createHttpsServer(certificate);
  const remember = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => sockets.delete(socket));
  };
  server.on("connection", remember);
  server.on("connect", (request, client: Socket, head: Buffer) => {
    asked.push(request.url ?? "");
    const wanted = credentials && `Basic ${Buffer.from(credentials).toString("base64")}`;
    if (request.headers["proxy-authorization"] !== wanted) {
      client.end("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(request.url ?? "") ?? [];
    const upstream = connect({ host, port: Number(port), allowHalfOpen: true });
    remember(upstream);
    upstream.once("error", () => client.end("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"));
    upstream.once("connect", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      if (head.byteLength > 0) upstream.write(head);
      client.pipe(upstream).pipe(client);
    });
  });
  const port = await listen(server);
  return { port, asked, close: () => closeServer(server, sockets) };
}
