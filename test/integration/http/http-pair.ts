import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { HttpUpstream } from "../../../packages/client/src/http/upstream/http-upstream.ts";
import type { UpstreamError } from "../../../packages/client/src/net/upstream-error.ts";
import { Http1Downstream } from "../../../src/http/downstream/http1-downstream.ts";
import type { ForwardOptions } from "../../../src/http/upstream/forward-options.ts";
import { forwardExchange } from "../../../src/http/upstream/http-forwarder.ts";
import {
  closeServer,
  listen,
  listenRaw,
  openClient,
  openSocketCount,
  type RawUpstream,
  readToEnd,
  until,
} from "../../support/http/loopback.ts";

/** A server that forwards everything to one upstream: what the gateway's listeners do with plain HTTP. */
export interface Forwarder {
  readonly port: number;
  readonly upstream: HttpUpstream;
  readonly errors: UpstreamError[];
  close(): Promise<void>;
}

export const cleanups: (() => Promise<void>)[] = [];

export async function startForwarder(
  upstreamPort: number,
  options: Partial<ForwardOptions> = {},
): Promise<Forwarder> {
  const upstream =
    options.upstream ?? new HttpUpstream({ endpoint: { host: "127.0.0.1", port: upstreamPort } });
  const errors: UpstreamError[] = [];
  const respondError = (error: UpstreamError, response: ServerResponse): void => {
    errors.push(error);
    const body = `${error.code}: ${error.message}`;
    response.writeHead(502, { connection: "close", "content-length": body.length }).end(body);
  };
  const forward = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void => {
    void forwardExchange(new Http1Downstream(request, response), {
      ...options,
      upstream,
      expectsContinue,
      respondError: (error) => respondError(error, response),
    });
  };
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => forward(request, response, false));
  server.on("checkContinue", (request, response) => forward(request, response, true));
  server.on("connection", (socket) => sockets.add(socket));
  const port = await listen(server);
  return {
    port,
    upstream,
    errors,
    close: async () => {
      upstream.close();
      await closeServer(server, sockets);
    },
  };
}

/** A scripted upstream and a forwarder to it; `closePairs` closes all. */
export async function startRawPair(
  onConnection: (socket: Socket) => void,
  options: Partial<ForwardOptions> = {},
): Promise<{ node: RawUpstream; forwarder: Forwarder }> {
  const node = await listenRaw(onConnection);
  const forwarder = await startForwarder(node.port, options);
  cleanups.push(forwarder.close, node.close);
  return { node, forwarder };
}

/** For an `afterEach`: what was begun is closed, and no socket is left. */
export async function closePairs(): Promise<void> {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  await until(() => openSocketCount() === 0, "all sockets closed");
}

/** Sends raw bytes on a connection of its own and reads to its end. */
export async function exchange(port: number, text: string): Promise<{ text: string; isClean: boolean }> {
  const socket = await openClient(port);
  socket.write(Buffer.from(text, "latin1"));
  return readToEnd(socket);
}
