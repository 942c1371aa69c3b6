import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer, type ServerOptions } from "node:https";
import type { Duplex } from "node:stream";
import type { AuditTrail } from "../access/audit/audit-trail.ts";
import { badRequest, genericError, internalError, StatusError } from "../api/status.ts";
import { headerListOf } from "../upstream/header-list.ts";
import { UpstreamError } from "../upstream/upstream-error.ts";
import type { AnswerContext } from "./answer.ts";
import { type AuditedRoutes, auditTrailOf, CLIENT_LEFT, completeWithResponse } from "./audit-request.ts";
import { HandshakeRefusal } from "./client-handshake.ts";
import { capConnections } from "./connection-cap.ts";
import type { ListenerContext } from "./context.ts";
import type { IncomingStreaming } from "./incoming-request.ts";
import { peerCertificatesOf } from "./peer-certificates.ts";
import { PendingClient } from "./pending-client.ts";
import { type ServingTls, tlsOptionsOf } from "./serving-tls.ts";

/** What a listener serves. Whatever is refused is thrown as a StatusError, and written in the listener's own words. */
export interface ListenerRoutes extends AuditedRoutes {
  handleRequest(
    incoming: IncomingStreaming,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void>;
  handleUpgrade(incoming: IncomingStreaming, request: IncomingMessage, client: PendingClient): Promise<void>;
  refuse(response: ServerResponse, refusal: StatusError): void;
  refuseUpgrade(socket: Duplex, refusal: StatusError, context: AnswerContext): void;
}

export interface ListenerOptions {
  /** Absent: plain HTTP. */
  readonly tls?: ServingTls | undefined;
}

const MAX_HANDSHAKE_CHECK_MS = 5_000;

/** A listener for HTTP/1.1 requests and upgrades, with every bound that clients meet before they are known. Not yet listening. */
export function createListener(
  gateway: ListenerContext,
  routes: ListenerRoutes,
  options: ListenerOptions,
): Server {
  const { limits, timeouts } = gateway;
  const httpOptions: ServerOptions = {
    maxHeaderSize: limits.maxRequestHeaderBytes,
    headersTimeout: timeouts.handshakeMs,
    // How often Node looks for heads that are late.
    connectionsCheckingInterval: Math.min(timeouts.handshakeMs, MAX_HANDSHAKE_CHECK_MS),
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
  capConnections(server, {
    maxConnectionsPerAddress: limits.maxConnectionsPerAddress,
    isExempt: (address) => gateway.edge.isTrustedProxy(address),
    onRefused: () => gateway.metrics.access.connectionRefused("too-many-of-address"),
  });

  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    void answerRequest(request, response, gateway, routes);
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    void answerUpgrade(request, socket, head, gateway, routes);
  });
  return server;
}

async function answerRequest(
  request: IncomingMessage,
  response: ServerResponse,
  gateway: ListenerContext,
  routes: ListenerRoutes,
): Promise<void> {
  let trail: AuditTrail | undefined;
  try {
    const incoming = incomingOf(request, gateway, routes);
    trail = incoming.trail;
    if (trail !== undefined) completeWithResponse(trail, response);
    await routes.handleRequest(incoming, request, response);
  } catch (error) {
    request.resume();
    const refusal = statusErrorOf(error, gateway);
    trail?.complete(refusal.status);
    routes.refuse(response, refusal);
  }
}

async function answerUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  gateway: ListenerContext,
  routes: ListenerRoutes,
): Promise<void> {
  const client = new PendingClient(socket, head);
  const answerContext = { clock: gateway.clock, lingerTimes: gateway.timeouts };
  let trail: AuditTrail | undefined;
  try {
    const incoming = incomingOf(request, gateway, routes);
    trail = incoming.trail;
    requireAllowedOrigin(incoming, gateway);
    await routes.handleUpgrade(incoming, request, client);
  } catch (error) {
    client.release();
    if (error instanceof UpstreamError && error.code === "aborted") {
      trail?.complete(CLIENT_LEFT);
      socket.destroy();
    } else if (error instanceof HandshakeRefusal) {
      trail?.complete({ code: error.status });
      error.writeTo(socket, answerContext);
    } else {
      const refusal = statusErrorOf(error, gateway);
      trail?.complete(refusal.status);
      routes.refuseUpgrade(socket, refusal, answerContext);
    }
  }
}

/** An error that is no answer is a fault of ours: logged whole, told without details. */
function statusErrorOf(error: unknown, gateway: ListenerContext): StatusError {
  if (error instanceof StatusError) return error;
  gateway.logger.error({ error }, "a request failed unexpectedly");
  return internalError("the gateway failed to handle the request");
}

/** Throws StatusError 403 for web pages that may not open sessions with what their browser adds. */
function requireAllowedOrigin(incoming: IncomingStreaming, { edge, metrics }: ListenerContext): void {
  const refusal = edge.originRefusal(incoming);
  if (refusal === undefined) return;
  metrics.access.connectionRefused("origin");
  throw refusal;
}

function incomingOf(
  request: IncomingMessage,
  { edge, audit, limits }: ListenerContext,
  routes: ListenerRoutes,
): IncomingStreaming {
  const target = request.url ?? "/";
  // Absolute-form targets belong to forward proxies, and `//host/path` would be read as one.
  if (!target.startsWith("/") || target.startsWith("//"))
    throw badRequest("the request target must be a path");
  const headers = headerListOf(request.rawHeaders);
  // Node 20 drops lines past its bound without a word; newer ones answer 431 themselves.
  if (headers.length >= limits.maxRequestHeaders) throw genericError(431, "too many header lines");
  const remoteAddress = request.socket.remoteAddress ?? "";
  const incoming = {
    method: request.method ?? "GET",
    url: new URL(`http://gateway${target}`),
    headers,
    peer: peerCertificatesOf(request.socket),
    remoteAddress,
    sourceAddresses: edge.sourceAddressesOf(headers, remoteAddress),
    isPeerTrusted: edge.isTrustedProxy(remoteAddress),
  };
  return audit === undefined ? incoming : { ...incoming, trail: auditTrailOf(incoming, audit, routes) };
}
