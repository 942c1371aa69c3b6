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
import { refuseUpgrade } from "./answer.ts";
import { auditTrailOf, CLIENT_LEFT, completeWithResponse, completeWithSocket } from "./audit-request.ts";
import { HandshakeRefusal } from "./client-handshake.ts";
import { capConnections } from "./connection-cap.ts";
import type { GatewayContext } from "./context.ts";
import { handleStreaming } from "./handle-streaming.ts";
import type { IncomingStreaming } from "./incoming-request.ts";
import { peerCertificatesOf } from "./peer-certificates.ts";
import { PendingClient } from "./pending-client.ts";
import { prepareStreaming } from "./prepare-streaming.ts";
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

const MAX_HANDSHAKE_CHECK_MS = 5_000;

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
  let trail: AuditTrail | undefined;
  try {
    const incoming = incomingOf(request, gateway);
    trail = incoming.trail;
    if (trail !== undefined) completeWithResponse(trail, response);
    const path = matchStreamingPath(incoming.url.pathname);
    if (path === undefined) return await other.handleRequest(incoming, request, response);
    // Refused for whatever is wrong first, and at last for not being an upgrade: Kubernetes takes `Connection: x-upgrade` for
    // one, the HTTP parser does not.
    await prepareStreaming(path, incoming, gateway);
    throw badRequest("Upgrade request required");
  } catch (error) {
    request.resume();
    const { status } = statusErrorOf(error, gateway);
    trail?.complete(status);
    writeStatus(response, status);
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
  let trail: AuditTrail | undefined;
  try {
    const incoming = incomingOf(request, gateway);
    trail = incoming.trail;
    requireAllowedOrigin(incoming, gateway);
    const path = matchStreamingPath(incoming.url.pathname);
    if (path === undefined) {
      await other.handleUpgrade(incoming, request, client);
      if (trail !== undefined) completeWithSocket(trail, socket);
      return;
    }
    await handleStreaming(path, incoming, client, gateway);
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
      refuseUpgrade(socket, refusal, answerContext);
    }
  }
}

/** An error that is no answer is a fault of ours: logged whole, told without details. */
function statusErrorOf(error: unknown, gateway: GatewayContext): StatusError {
  if (error instanceof StatusError) return error;
  gateway.logger.error({ error }, "a request failed unexpectedly");
  return internalError("the gateway failed to handle the request");
}

/** Throws StatusError 403 for web pages that may not open sessions with what their browser adds. */
function requireAllowedOrigin(incoming: IncomingStreaming, { edge, metrics }: GatewayContext): void {
  const refusal = edge.originRefusal(incoming);
  if (refusal === undefined) return;
  metrics.access.connectionRefused("origin");
  throw refusal;
}

function incomingOf(request: IncomingMessage, { edge, audit, limits }: GatewayContext): IncomingStreaming {
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
  return audit === undefined ? incoming : { ...incoming, trail: auditTrailOf(incoming, audit) };
}
