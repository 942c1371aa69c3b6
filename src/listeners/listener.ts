// src/listeners: HTTP/1.1 and HTTP/2 servers: limits, rules at the edge, WebSocket streams (RFC 8441), from an error to its answer

import type { Server } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { UnknownMethod } from "../http/downstream/client-error.ts";
import type { HttpDownstream } from "../http/downstream/http-downstream.ts";
import { Http1Downstream } from "../http/downstream/http1-downstream.ts";
import { boundsOfListener, createHttp1Server } from "../http/downstream/http1-server.ts";
import { Http2Downstream } from "../http/downstream/http2-downstream.ts";
import { headerListOf } from "../http/header-list.ts";
import { abortSocket } from "../net/abort-socket.ts";
import { stopAccepting } from "../net/stop-accepting.ts";
import { contain, containEvents, settleFault } from "../observability/faults.ts";
import { answerRequest, answerUpgrade, type ListenerRoutes } from "./answer-incoming.ts";
import { connectionCap } from "./connection-cap.ts";
import { Http2Connections, type Http2Handlers } from "./http2-connections.ts";
import type { ListenerContext } from "./listener-context.ts";
import { PlainRequests } from "./plain-requests.ts";
import { admitConnections } from "./proxy-protocol.ts";
import type { RequestHead } from "./request-head.ts";
import { RequestSeats } from "./request-seats.ts";
import { type ServingTls, serveByAlpn, tlsOptionsOf } from "./serving-tls.ts";
import { UnusedConnections } from "./unused-connections.ts";
import { webSocketRequestOf } from "./websocket-stream.ts";

export interface ListenerOptions {
  /** Absent: plain HTTP. */
  readonly tls?: ServingTls | undefined;
  /** HTTP/2 is offered to TLS clients, and spoken with those that choose it. */
  readonly http2?: boolean | undefined;
  /** Proxies whose connections begin with a PROXY protocol header. Absent: none. */
  readonly proxyProtocol?: { readonly from: readonly string[] } | undefined;
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
      onUnknownMethod: (request, socket) => logUnknownMethod(request, socket as Socket, gateway),
    },
    { tls },
  );
  unusedConnections.watch(server);
  // A server of TLS takes what was read before by itself.
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

/** Of such a request Node gives its first line alone. */
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
