// src/listeners: HTTP/1.1 and HTTP/2 servers: limits, rules at the edge, WebSocket streams (RFC
// 8441), from an error to its answer

import type { Server } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { UnknownMethod } from "@sluice/client/internal/http/downstream/client-error";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { createHttp1Server } from "@sluice/client/internal/http/downstream/http1-server";
import { headerListOf } from "@sluice/client/internal/http/header-list";
import { abortSocket } from "@sluice/client/internal/net/abort-socket";
import { containEvents, settleFault } from "@sluice/client/internal/observability/faults";
import { Http1Downstream } from "../http/downstream/http1-downstream.ts";
import { Http2Downstream } from "../http/downstream/http2-downstream.ts";
import { boundsOfListener } from "../http/downstream/listener-bounds.ts";
import { stopAccepting } from "../net/listen.ts";
import { answerRequest, answerUpgrade, type ListenerRoutes } from "./answer-incoming.ts";
import { connectionCap, type ListenerContext } from "./edge-rules.ts";
import { Http2Connections, type Http2Handlers } from "./http2-connections.ts";
import { PlainRequests } from "./plain-requests.ts";
import { admitConnections } from "./proxy-protocol.ts";
import { RequestSeats } from "./request-seats.ts";
import { RequestTurns } from "./request-turns.ts";
import { type ServingTls, serveByAlpn, tlsOptionsOf } from "./serving-tls.ts";
import { UnusedConnections } from "./unused-connections.ts";
import { type RequestHead, webSocketRequestOf } from "./websocket-stream.ts";

export interface ListenerOptions {
  /** Absent: plain HTTP. */
  readonly tls?: ServingTls | undefined;
  /** Offers HTTP/2 to TLS clients. */
  readonly http2?: boolean | undefined;
  /** Proxies whose connections begin with a PROXY protocol header. Absent: none. */
  readonly proxyProtocol?: { readonly from: readonly string[] } | undefined;
}

/** A server and its request handlers, which can also serve requests from another server (the front door). */
export interface Listener {
  /** Not yet listening. */
  readonly server: Server;
  readonly plainRequests: PlainRequests;
  readonly unusedConnections: UnusedConnections;
  /** Answers a plain request from `socket`. Never rejects. */
  answerRequest(downstream: HttpDownstream, socket: Duplex): Promise<void>;
  /**
   * Answers an upgrade request on an HTTP/2 stream, or on its connection after `early`, the bytes
   * already read. Resolves with the status, if one was sent. Never rejects.
   */
  answerUpgrade(request: RequestHead, client: Duplex, early: Buffer): Promise<number | undefined>;
  /** Connections accept no requests beyond their present ones. */
  drain(): void;
  /** Stops accepting, and closes idle connections. */
  stopAccepting(): Promise<void>;
  /** Resolves when the queued HTTP/2 answers have been sent, or after `timeoutMs`. Call after `drain`. */
  flushed(timeoutMs: number): Promise<void>;
}

/** Creates a listener with every limit that applies before authentication. Not yet listening. */
export function createListener(
  gateway: ListenerContext,
  routes: ListenerRoutes,
  options: ListenerOptions,
): Listener {
  const { limits, timeouts } = gateway;
  // The seats and their queue already limit these.
  const plainRequests = new PlainRequests(Number.POSITIVE_INFINITY, timeouts.streamIdleMs);
  const unusedConnections = new UnusedConnections();
  const turns = new RequestTurns((address) => gateway.edge.isTrustedProxy(address));
  const listener = answersOf(gateway, routes, plainRequests);
  const tls = options.tls && tlsOptionsOf(options.tls, timeouts.handshakeMs, options.http2);
  const server = createHttp1Server(
    boundsOfListener(limits, timeouts),
    {
      onFirstRequest: (socket) => unusedConnections.used(socket),
      onRequest: (request, response) => {
        const begin = (): void =>
          void listener.answerRequest(new Http1Downstream(request, response), request.socket);
        turns.takeExchange(request, response, begin, () => response.destroy());
      },
      onUpgrade: (request, socket, early) => {
        const { method = "GET", url: target = "/" } = request;
        const head = { method, target, headers: headerListOf(request.rawHeaders), socket };
        turns.takeUpgrade(
          socket,
          () => listener.answerUpgrade(head, socket, early),
          () => socket.destroy(),
        );
      },
      onUnknownMethod: (request, socket) => logUnknownMethod(request, socket as Socket, gateway),
    },
    { tls },
  );
  unusedConnections.watch(server);
  // A TLS server reads the unread bytes itself.
  if (tls === undefined && options.proxyProtocol !== undefined)
    server.on("connection", (socket: Socket) => socket.resume());
  const { access } = gateway.metrics;
  admitConnections(server, {
    from: options.proxyProtocol?.from,
    timeoutMs: timeouts.handshakeMs,
    admit: connectionCap(gateway, () => access.connectionRefused("too-many-of-address")),
    onRefused: (reason) => access.connectionRefused(reason),
    logger: gateway.logger,
  });
  const http2 =
    options.tls !== undefined && options.http2 === true ? http2For(gateway, listener, turns) : undefined;
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
    stopAccepting: () => {
      turns.drain();
      return stopAccepting(server);
    },
    drain: () => {
      plainRequests.drain();
      http2?.drain();
    },
    flushed: async (timeoutMs) => await http2?.flushed(timeoutMs),
  };
}

type Answers = Pick<Listener, "answerRequest" | "answerUpgrade">;

function answersOf(gateway: ListenerContext, routes: ListenerRoutes, plainRequests: PlainRequests): Answers {
  const seats = new RequestSeats(gateway.limits);
  return {
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
        return await answerUpgrade(request, client, early, gateway, routes);
      } catch (error) {
        settleFault("request", error, abort);
        return undefined;
      }
    },
  };
}

/** For such a request Node reports only the request line. */
function logUnknownMethod({ method, target }: UnknownMethod, socket: Socket, gateway: ListenerContext): void {
  const [path] = target.split("?", 1);
  const { remoteAddress } = socket;
  gateway.logger.info(
    { method, path, remoteAddress, code: 501, reason: "the method is not known here" },
    "request refused",
  );
}

function http2For(
  { limits, timeouts }: ListenerContext,
  { answerRequest, answerUpgrade }: Answers,
  turns: RequestTurns,
): Http2Connections {
  // After a 401 the client must use another connection: kube-apiserver's UnauthenticatedHTTP2DOSMitigation.
  const leaveUnknown = async (stream: ServerHttp2Stream, answered: Promise<unknown>): Promise<void> => {
    const { session } = stream;
    await answered;
    if (stream.sentHeaders?.[":status"] === 401) session?.close();
  };
  const handlers: Http2Handlers = {
    onRequest: ({ stream, pseudo, rawHeaders, socket }) => {
      const downstream = new Http2Downstream(stream, pseudo, rawHeaders);
      // Node does this by itself for HTTP/1.1.
      if (pseudo.expect === "100-continue") downstream.sendContinue();
      void leaveUnknown(stream, answerRequest(downstream, socket));
    },
    onConnect: (request) => {
      const webSocket = webSocketRequestOf(request, timeouts.lingerIdleMs);
      if (webSocket === undefined) return;
      void leaveUnknown(request.stream, answerUpgrade(webSocket, request.stream, Buffer.alloc(0)));
    },
  };
  const { streamIdleMs: takingMs, handshakeMs: headMs } = timeouts;
  return new Http2Connections(limits, handlers, { takingMs, headMs, turns });
}
