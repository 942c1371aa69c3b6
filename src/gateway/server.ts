import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer, type ServerOptions } from "node:https";
import type { Duplex } from "node:stream";
import { badRequest, internalError, StatusError } from "../api/status.ts";
import { headerListOf } from "../upstream/header-list.ts";
import { UpstreamError } from "../upstream/upstream-error.ts";
import { refuseUpgrade } from "./answer.ts";
import { HandshakeRefusal } from "./client-handshake.ts";
import type { GatewayContext } from "./context.ts";
import { handleStreaming } from "./handle-streaming.ts";
import { peerCertificatesOf } from "./peer-certificates.ts";
import { PendingClient } from "./pending-client.ts";
import { type IncomingStreaming, prepareStreaming } from "./prepare-streaming.ts";
import { type ServingTls, tlsOptionsOf } from "./serving-tls.ts";
import { matchStreamingPath } from "./streaming-request.ts";
import { writeStatus } from "./write-status.ts";

/** What is not a streaming subresource: answered from manifests, or forwarded to an API server. */
export interface OtherRequests {
  handleRequest(
    incoming: IncomingStreaming,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void>;
  handleUpgrade(incoming: IncomingStreaming, request: IncomingMessage, client: PendingClient): Promise<void>;
}

export interface ApiServerOptions {
  /** Absent: plain HTTP. */
  readonly tls?: ServingTls | undefined;
}

/** Largest burst a client may send before it is answered; more waits in the kernel. */
const MAX_EARLY_BYTES = 64 * 1024;

/** The listener of the API-server leg. Not yet listening. */
export function createApiServer(
  gateway: GatewayContext,
  other: OtherRequests,
  options: ApiServerOptions,
): Server {
  const { limits, timeouts } = gateway;
  const httpOptions: ServerOptions = {
    maxHeaderSize: limits.maxRequestHeaderBytes,
    headersTimeout: timeouts.handshakeMs,
    // A client's whole body may take long; only its head may not.
    requestTimeout: 0,
    highWaterMark: limits.socketBufferBytes,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
  };
  const server =
    options.tls === undefined
      ? createHttpServer(httpOptions)
      : createHttpsServer({
          ...httpOptions,
          ...tlsOptionsOf(options.tls, timeouts.handshakeMs),
        });
  server.maxHeadersCount = limits.maxRequestHeaders;

  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    void answerRequest(request, response, gateway, other);
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    void answerUpgrade(request, socket, head, gateway, other);
  });
  return server;
}

async function answerRequest(
  request: IncomingMessage,
  response: ServerResponse,
  gateway: GatewayContext,
  other: OtherRequests,
): Promise<void> {
  try {
    const incoming = incomingOf(request);
    const path = matchStreamingPath(incoming.url.pathname);
    if (path === undefined) return await other.handleRequest(incoming, request, response);
    // Refused for whatever is wrong first, and at last for not being an upgrade: Kubernetes takes `Connection: x-upgrade` for
    // one, the HTTP parser does not.
    await prepareStreaming(path, incoming, gateway);
    throw badRequest("Upgrade request required");
  } catch (error) {
    request.resume();
    writeStatus(response, statusErrorOf(error, gateway).status);
  }
}

async function answerUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  gateway: GatewayContext,
  other: OtherRequests,
): Promise<void> {
  const client = new PendingClient(socket, head, MAX_EARLY_BYTES);
  const answerContext = { clock: gateway.clock, lingerTimes: gateway.timeouts };
  try {
    const incoming = incomingOf(request);
    const path = matchStreamingPath(incoming.url.pathname);
    if (path === undefined) return await other.handleUpgrade(incoming, request, client);
    await handleStreaming(path, incoming, client, gateway);
  } catch (error) {
    client.release();
    if (error instanceof UpstreamError && error.code === "aborted") socket.destroy();
    else if (error instanceof HandshakeRefusal) error.writeTo(socket, answerContext);
    else refuseUpgrade(socket, statusErrorOf(error, gateway), answerContext);
  }
}

/** An error that is no answer is a fault of ours: logged whole, told without details. */
function statusErrorOf(error: unknown, gateway: GatewayContext): StatusError {
  if (error instanceof StatusError) return error;
  gateway.logger.error({ error }, "a request failed unexpectedly");
  return internalError("the gateway failed to handle the request");
}

function incomingOf(request: IncomingMessage): IncomingStreaming {
  const target = request.url ?? "/";
  // Absolute-form targets belong to forward proxies, and `//host/path` would be read as one.
  if (!target.startsWith("/") || target.startsWith("//"))
    throw badRequest("the request target must be a path");
  return {
    method: request.method ?? "GET",
    url: new URL(`http://gateway${target}`),
    headers: headerListOf(request.rawHeaders),
    peer: peerCertificatesOf(request.socket),
    remoteAddress: request.socket.remoteAddress ?? "",
  };
}
