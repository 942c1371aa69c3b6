// src/listeners: HTTP/1.1 and HTTP/2 servers: limits, rules at the edge, WebSocket streams (RFC 8441), from an error to its answer

import type { Server } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { AuditTrail } from "../access/audit/audit-trail.ts";
import type { RequestSource } from "../access/authn/authenticator.ts";
import { genericError, internalError, StatusError } from "../api/status.ts";
import { UNREAD_BODY_LINGER_MS } from "../http/forward-options.ts";
import { headerListOf } from "../http/header-list.ts";
import type { HttpDownstream } from "../http/http-downstream.ts";
import { Http1Downstream } from "../http/http1-downstream.ts";
import { boundsOfListener, createHttp1Server } from "../http/http1-server.ts";
import { Http2Downstream } from "../http/http2-downstream.ts";
import { requestUrlOf } from "../http/request-url.ts";
import { beginTrace, endWithResponse } from "../http/trace-headers.ts";
import { abortSocket } from "../net/abort-socket.ts";
import { stopAccepting } from "../net/stop-accepting.ts";
import { UpstreamError } from "../net/upstream-error.ts";
import { contain, containEvents, reportFault, settleFault } from "../observability/faults.ts";
import { HandshakeRefusal } from "../sessions/client-handshake.ts";
import type { IncomingStreaming } from "../sessions/incoming-request.ts";
import { PendingClient } from "../sessions/pending-client.ts";
import { type AnswerContext, answerAndClose } from "./answer.ts";
import { type AuditedRoutes, auditTrailOf, CLIENT_LEFT, completeWithResponse } from "./audit-request.ts";
import { capConnections, networkOf } from "./connection-cap.ts";
import { Http2Connections, type Http2Handlers } from "./http2-connections.ts";
import type { ListenerContext } from "./listener-context.ts";
import { peerCertificatesOf } from "./peer-certificates.ts";
import { PlainRequests } from "./plain-requests.ts";
import type { RequestHead } from "./request-head.ts";
import { requireOneSpelling } from "./request-path.ts";
import { RequestSeats } from "./request-seats.ts";
import { type ServingTls, serveByAlpn, tlsOptionsOf } from "./serving-tls.ts";
import { UnusedConnections } from "./unused-connections.ts";
import { webSocketRequestOf } from "./websocket-stream.ts";

/** What a listener serves. Whatever is refused is thrown as a StatusError, and written in the listener's own words. */
export interface ListenerRoutes extends AuditedRoutes {
  /** As at a kubelet: an API server passes on the Origin of the page in front of it, and has judged it. */
  readonly takesAnyOrigin?: true;
  handleRequest(incoming: IncomingStreaming, downstream: HttpDownstream): Promise<void>;
  handleUpgrade(incoming: IncomingStreaming, client: PendingClient): Promise<void>;
  refuse(downstream: HttpDownstream, refusal: StatusError): void;
  refuseUpgrade(socket: Duplex, refusal: StatusError, context: AnswerContext): void;
}

export interface ListenerOptions {
  /** Absent: plain HTTP. */
  readonly tls?: ServingTls | undefined;
  /** HTTP/2 is offered to TLS clients, and spoken with those that choose it. */
  readonly http2?: boolean | undefined;
}

/** A server and what it does with requests, which may as well have come to another one (the front door). */
export interface Listener {
  /** For connections. Not yet listening. */
  readonly server: Server;
  readonly plainRequests: PlainRequests;
  readonly unusedConnections: UnusedConnections;
  /** Answers a plain request that came on `socket`. Never rejects. */
  answerRequest(downstream: HttpDownstream, socket: Duplex): Promise<void>;
  /** Answers a request for an upgrade: on its connection, with `early` bytes of it read, or on an HTTP/2 stream. Never rejects. */
  answerUpgrade(request: RequestHead, client: Duplex, early: Buffer): Promise<void>;
  /** No connection takes another request than those that it has. */
  drain(): void;
  /** Takes no new connections, and closes those that are kept for another request. */
  stopAccepting(): Promise<void>;
  /** Resolves when what is queued of HTTP/2 answers has left, or after `timeoutMs`. To be called after `drain`. */
  flushed(timeoutMs: number): Promise<void>;
}

/** A listener with every bound that clients meet before they are known. Not yet listening. */
export function createListener(
  gateway: ListenerContext,
  routes: ListenerRoutes,
  options: ListenerOptions,
): Listener {
  const { limits, timeouts } = gateway;
  const seats = new RequestSeats(limits);
  // Bounded by their seats, and by those that wait for one.
  const plainRequests = new PlainRequests(Number.POSITIVE_INFINITY, timeouts.streamIdleMs);
  const unusedConnections = new UnusedConnections();
  const listener: Pick<Listener, "answerRequest" | "answerUpgrade"> = {
    answerRequest: async (downstream, socket) => {
      const abort = (): void => downstream.abort();
      try {
        downstream.contain("request", abort);
        plainRequests.add(downstream);
        await answerRequest(downstream, socket, gateway, routes, seats);
      } catch (error) {
        settleFault("request", error, abort);
      }
    },
    answerUpgrade: async (request, client, early) => {
      const abort = (): void => abortSocket(client);
      try {
        containEvents(client, "request", abort);
        await answerUpgrade(request, client, early, gateway, routes);
      } catch (error) {
        settleFault("request", error, abort);
      }
    },
  };
  const tls = options.tls && tlsOptionsOf(options.tls, timeouts.handshakeMs, options.http2);
  const server = createHttp1Server(
    boundsOfListener(limits, timeouts),
    {
      onFirstRequest: (socket) => unusedConnections.used(socket),
      onRequest: (request, response) => {
        const begin = (): void =>
          void listener.answerRequest(new Http1Downstream(request, response), request.socket);
        contain("listener", begin, () => response.destroy());
      },
      onUpgrade: (request, socket, early) => {
        const { method = "GET", url: target = "/" } = request;
        const head = { method, target, headers: headerListOf(request.rawHeaders), socket };
        const begin = (): void => void listener.answerUpgrade(head, socket, early);
        contain("listener", begin, () => socket.destroy());
      },
    },
    { tls },
  );
  unusedConnections.watch(server);
  capConnections(server, gateway, () => gateway.metrics.access.connectionRefused("too-many-of-address"));
  const http2 = options.tls !== undefined && options.http2 === true ? http2For(gateway, listener) : undefined;
  if (http2 !== undefined) {
    serveByAlpn(server, (socket) => {
      unusedConnections.used(socket);
      http2.accept(socket);
    });
  }
  return {
    ...listener,
    server,
    plainRequests,
    unusedConnections,
    stopAccepting: () => stopAccepting(server),
    drain: () => {
      plainRequests.drain();
      http2?.drain();
    },
    flushed: async (timeoutMs) => await http2?.flushed(timeoutMs),
  };
}

function http2For(
  { limits, timeouts }: ListenerContext,
  { answerRequest, answerUpgrade }: Pick<Listener, "answerRequest" | "answerUpgrade">,
): Http2Connections {
  // An unauthenticated client may not try again on the same connection: kube-apiserver's UnauthenticatedHTTP2DOSMitigation.
  const leaveUnknown = async (stream: ServerHttp2Stream, answered: Promise<void>): Promise<void> => {
    const { session } = stream;
    await answered;
    if (stream.sentHeaders?.[":status"] === 401 && session?.closed === false) session.close();
  };
  const handlers: Http2Handlers = {
    onRequest: ({ stream, pseudo, rawHeaders, socket }) => {
      const downstream = new Http2Downstream(stream, pseudo, rawHeaders);
      // As Node does by itself for HTTP/1.1.
      if (pseudo.expect === "100-continue") downstream.sendContinue();
      void leaveUnknown(stream, answerRequest(downstream, socket));
    },
    onConnect: (request) => {
      const webSocket = webSocketRequestOf(request);
      if (webSocket === undefined) return;
      void leaveUnknown(request.stream, answerUpgrade(webSocket, request.stream, Buffer.alloc(0)));
    },
  };
  return new Http2Connections(limits, handlers, { takingMs: timeouts.streamIdleMs });
}

async function answerRequest(
  downstream: HttpDownstream,
  socket: Duplex,
  gateway: ListenerContext,
  routes: ListenerRoutes,
  seats: RequestSeats,
): Promise<void> {
  let trail: AuditTrail | undefined;
  let incoming: IncomingRequest | undefined;
  try {
    const { method, target, headers } = downstream;
    incoming = incomingOf({ method, target, headers, socket }, gateway, routes);
    trail = incoming.trail;
    endWithResponse(incoming.trace, downstream);
    if (trail !== undefined) completeWithResponse(trail, downstream);
    const admit = await seats.arrive(downstream, incoming.source);
    await routes.handleRequest({ ...incoming, admit }, downstream);
  } catch (error) {
    const refusal = statusErrorOf(error);
    logRefusal(incoming, refusal, gateway);
    trail?.complete(refusal.status);
    await refuse(downstream, refusal, routes);
  }
}

async function refuse(
  downstream: HttpDownstream,
  refusal: StatusError,
  routes: Pick<ListenerRoutes, "refuse">,
): Promise<void> {
  routes.refuse(downstream, refusal);
  if (!downstream.isBodyComplete) downstream.discardBody(UNREAD_BODY_LINGER_MS);
}

async function answerUpgrade(
  request: RequestHead,
  socket: Duplex,
  early: Buffer,
  gateway: ListenerContext,
  routes: ListenerRoutes,
): Promise<void> {
  const client = new PendingClient(socket, early);
  const answerContext = { clock: gateway.clock, lingerTimes: gateway.timeouts };
  let trail: AuditTrail | undefined;
  let incoming: IncomingStreaming | undefined;
  try {
    incoming = incomingOf(request, gateway, routes);
    trail = incoming.trail;
    if (routes.takesAnyOrigin !== true) requireAllowedOrigin(incoming, request.socket, gateway);
    await routes.handleUpgrade(incoming, client);
  } catch (error) {
    client.release();
    if (error instanceof UpstreamError && error.code === "aborted") {
      incoming?.trace?.end(0);
      trail?.complete(CLIENT_LEFT);
      socket.destroy();
    } else if (error instanceof HandshakeRefusal) {
      incoming?.trace?.end(error.status);
      trail?.complete({ code: error.status });
      const headers = [...error.headers, ["Content-Type", "text/plain; charset=utf-8"] as const];
      answerAndClose(socket, error.status, headers, Buffer.from(error.message), answerContext);
    } else {
      const refusal = statusErrorOf(error);
      logRefusal(incoming, refusal, gateway);
      incoming?.trace?.end(refusal.code);
      trail?.complete(refusal.status);
      routes.refuseUpgrade(socket, refusal, answerContext);
    }
  }
}

/** A request that may not be made has one line: a session's is written where it is counted. Not the query, which may hold a token. */
function logRefusal(
  incoming: IncomingStreaming | undefined,
  { code, message: reason }: StatusError,
  { logger }: ListenerContext,
): void {
  if (incoming === undefined || incoming.notes?.isLogged === true || (code !== 401 && code !== 403)) return;
  const { method, url, remoteAddress, notes } = incoming;
  const { user, requestedBy } = notes ?? {};
  logger.info(
    { method, path: url.pathname, remoteAddress, user, requestedBy, code, reason },
    "request refused",
  );
}

/** An error that is no answer is a fault of ours: logged whole, answered without details. */
function statusErrorOf(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  reportFault("request", error);
  return internalError("the gateway failed to handle the request");
}

/** Throws StatusError 403 for web pages that may not open sessions with what their browser adds. */
function requireAllowedOrigin(
  incoming: IncomingStreaming,
  socket: Duplex,
  { edge, metrics }: ListenerContext,
): void {
  const isTls = (socket as Partial<TLSSocket>).encrypted === true;
  const refusal = edge.originRefusal(incoming, { isTls, remoteAddress: incoming.remoteAddress });
  if (refusal === undefined) return;
  metrics.access.connectionRefused("origin");
  throw refusal;
}

type IncomingRequest = IncomingStreaming & { readonly source: RequestSource };

function incomingOf(
  { method, target, headers, socket }: RequestHead,
  { edge, audit, limits, tracing }: ListenerContext,
  routes: ListenerRoutes,
): IncomingRequest {
  requireOneSpelling(target);
  if (headers.length > limits.maxRequestHeaders) throw genericError(431, "too many header lines");
  const { remoteAddress = "", remotePort } = socket as Socket;
  const sourceAddresses = edge.sourceAddressesOf(headers, remoteAddress);
  const incoming = {
    method,
    target,
    url: requestUrlOf(target),
    headers,
    peer: peerCertificatesOf(socket),
    remoteAddress,
    source: {
      address: networkOf(sourceAddresses[0] ?? remoteAddress),
      connection: `${remoteAddress} ${remotePort}`,
    },
    sourceAddresses,
    isPeerTrusted: edge.isTrustedProxy(remoteAddress),
    notes: {},
    trace: beginTrace(tracing, { method, target, headers }, socket, sourceAddresses),
  };
  return audit === undefined ? incoming : { ...incoming, trail: auditTrailOf(incoming, audit, routes) };
}
