import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createHttpsServer, type ServerOptions } from "node:https";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";

export interface TunnelProxyOptions {
  /** Listens on a unix socket instead of 127.0.0.1. */
  readonly socketPath?: string;
  readonly tls?: ServerOptions;
}

/** An HTTP proxy that supports only CONNECT, by Node's own HTTP server. */
export class TunnelProxy {
  readonly requests: IncomingMessage[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();

  private constructor(server: Server) {
    this.#server = server;
    server.on("connection", (socket: Duplex) => this.#keep(socket));
    server.on("connect", (request: IncomingMessage, client: Duplex, head: Buffer) => {
      this.requests.push(request);
      const { hostname, port } = new URL(`http://${request.url}`);
      const upstream = connect({
        host: hostname.replace(/^\[|\]$/g, ""),
        port: Number(port),
        allowHalfOpen: true,
      });
      this.#keep(upstream);
      this.#keep(client);
      upstream.on("connect", () => {
        client.write("HTTP/1.1 200 Connection established\r\n\r\n");
        upstream.write(head);
        client.pipe(upstream).pipe(client);
      });
      upstream.on("error", () => client.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"));
      client.on("close", () => upstream.destroy());
    });
  }

  static async start({ socketPath, tls }: TunnelProxyOptions = {}): Promise<TunnelProxy> {
    const proxy = new TunnelProxy(tls === undefined ? createServer() : createHttpsServer(tls));
    await new Promise<void>((resolve) => {
      if (socketPath === undefined) proxy.#server.listen(0, "127.0.0.1", resolve);
      else proxy.#server.listen(socketPath, resolve);
    });
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #keep(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => this.#sockets.delete(socket));
  }
}
