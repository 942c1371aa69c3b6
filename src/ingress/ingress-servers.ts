import type { Server as HttpServer, IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { refuseInText, type UnknownMethod } from "@sluice/client/internal/http/downstream/client-error";
import { createHttp1Server } from "@sluice/client/internal/http/downstream/http1-server";
import { headerListOf, headerTokens } from "@sluice/client/internal/http/header-list";
import { abortSocket } from "@sluice/client/internal/net/abort-socket";
import { containAsync, containEvents } from "@sluice/client/internal/observability/faults";
import type { IngressListener } from "../config/sections/ingress-listener.ts";
import { Http1Downstream } from "../http/downstream/http1-downstream.ts";
import { Http2Downstream } from "../http/downstream/http2-downstream.ts";
import { boundsOfListener } from "../http/downstream/listener-bounds.ts";
import { connectionCap } from "../listeners/edge-rules.ts";
import { Http2Connections, type Http2Handlers } from "../listeners/http2-connections.ts";
import { admitConnections, judgeByFirstBytes } from "../listeners/proxy-protocol.ts";
import { RequestTurns } from "../listeners/request-turns.ts";
import { UnusedConnections } from "../listeners/unused-connections.ts";
import { webSocketRequestOf } from "../listeners/websocket-stream.ts";
import { stopAccepting } from "../net/listen.ts";
import type { CertificateAndKey } from "./certificates.ts";
import { forwardRequest } from "./forward-request.ts";
import { forwardUpgradeRequest, type IncomingUpgrade } from "./forward-upgrade-request.ts";
import type { IngressContext } from "./ingress-context.ts";
import { originOf } from "./ingress-request.ts";
import { createSecureServer, type SecureServerOptions } from "./secure-server.ts";

const NOT_IMPLEMENTED = 501;

/** The first bytes of an HTTP/2 client with prior knowledge (RFC 9113 section 3.4). */
const HTTP2_PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

interface IngressServers {
  /** HTTP/1.1, and HTTP/2 with prior knowledge. */
  readonly plain: Server;
  /** HTTP/1.1 or HTTP/2, negotiated by ALPN. */
  readonly secure: Server;
  /** Replaces the default certificate for new handshakes. */
  setDefaultTls(defaultTls: CertificateAndKey): void;
  /** Each connection accepts at most one more request; HTTP/2 clients get GOAWAY. */
  enterLameDuck(): void;
  readonly unusedConnections: UnusedConnections;
  /** Refuses new connections, and closes idle ones. */
  stopAccepting(): Promise<void>;
  flushed(timeoutMs: number): Promise<void>;
  /** Refuses new connections, and closes the remaining ones. */
  stop(): Promise<void>;
}

/** Creates the front door's servers; they do not listen yet. */
export function createIngressServers(
  context: IngressContext,
  tls: Pick<SecureServerOptions, "defaultTls" | "certificatesFor" | "ticketKeys" | "settings">,
  proxyProtocol: IngressListener["proxyProtocol"],
): IngressServers {
  const unusedConnections = new UnusedConnections();
  const turns = new RequestTurns((address) => context.edge.isTrustedProxy(address));
  const http1 = createHttp1(context, unusedConnections, turns);
  const http2 = http2For(context, turns);
  const { timeouts } = context;
  const acceptHttp2 = (socket: Socket): void => {
    unusedConnections.used(socket);
    http2.accept(socket);
  };
  const plain = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    judgeByFirstBytes(socket, {
      timeoutMs: timeouts.handshakeMs,
      judge: beginsHttp2,
      decide: (isHttp2) => {
        if (isHttp2) {
          // The HTTP/2 session reads the buffered bytes later; a flowing socket would lose them.
          acceptHttp2(socket);
        } else {
          http1.emit("connection", socket);
          socket.resume();
        }
      },
    });
  });
  const onSecure = (socket: TLSSocket): void => {
    if (socket.alpnProtocol === "h2") acceptHttp2(socket);
    else http1.emit("connection", socket);
  };
  const { server: secure, setDefault: setDefaultTls } = createSecureServer({
    ...tls,
    handshakeMs: timeouts.handshakeMs,
    onSecure,
  });
  const sockets = new Set<Socket>();
  for (const server of [plain, secure]) {
    unusedConnections.watch(server);
    admitConnections(server, {
      from: proxyProtocol?.from,
      timeoutMs: timeouts.handshakeMs,
      admit: connectionCap(context, () => context.onConnectionRefused("too-many-of-address")),
      onRefused: (reason) => context.onConnectionRefused(reason),
      logger: context.logger,
    });
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
  }
  return {
    plain,
    secure,
    setDefaultTls,
    unusedConnections,
    enterLameDuck: () => {
      context.requests.drain();
      http2.drain();
    },
    stopAccepting: async () => {
      turns.drain();
      await Promise.all([plain, secure].map(stopAccepting));
      // This server never listened; closing it ends idle connections and the timer for slow heads.
      http1.close();
    },
    flushed: (timeoutMs) => http2.flushed(timeoutMs),
    stop: async () => {
      const closed = [plain, secure].map((server) => new Promise((resolve) => server.close(resolve)));
      http1.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
    },
  };
}

function createHttp1(context: IngressContext, unused: UnusedConnections, turns: RequestTurns): HttpServer {
  const forward = (request: IncomingMessage, response: ServerResponse, expectsContinue = false): void => {
    const { socket, httpVersionMinor } = request;
    const downstream = new Http1Downstream(request, response);
    const mayOmitHost = httpVersionMinor === 0;
    const exchange = { downstream, socket, protocol: "http/1.1", expectsContinue, mayOmitHost } as const;
    const begin = (): void => forwardRequest(exchange, context);
    turns.takeExchange(request, response, begin, () => downstream.abort());
  };
  const server = createHttp1Server(
    boundsOfListener(context.limits, context.timeouts),
    {
      onFirstRequest: (socket) => unused.used(socket),
      onRequest: forward,
      onExpectContinue: (request, response) => forward(request, response, true),
      onUpgrade: (request, socket, early) => {
        if (isIgnored(request)) ignoreUpgrade(request, socket, early, server);
        else {
          const upgrade = http1Upgrade(request, socket, early, context);
          turns.takeUpgrade(
            socket,
            () => answerUpgrade(upgrade, context),
            () => abortSocket(socket),
          );
        }
      },
      onConnect: (socket) => refuseInText(socket, 404, "this server is not a proxy"),
      onUnknownMethod: (request, socket) => logUnknownMethod(request, socket as Socket, context),
    },
    // Sluice itself refuses a missing Host, because Node's answer has no body.
    { requireHostHeader: false },
  );
  // Starts Node's connection timeouts: the server gets its connections from us and never listens.
  server.emit("listening");
  return server;
}

/** Node passes only such a request's first line. */
function logUnknownMethod(request: UnknownMethod, socket: Socket, context: IngressContext): void {
  context.metrics.requestEnded("http/1.1", NOT_IMPLEMENTED, undefined, undefined);
  context.accessLog?.write({
    ...originOf(socket, context.edge),
    ...request,
    startedMs: performance.now(),
    protocol: "http/1.1",
    headers: [],
    route: undefined,
    status: NOT_IMPLEMENTED,
    responseBytes: 0,
  });
}

/** Resolves with the status, if one was sent. */
async function answerUpgrade(upgrade: IncomingUpgrade, context: IngressContext): Promise<number | undefined> {
  containEvents(upgrade.client, "listener", () => abortSocket(upgrade.client));
  return await forwardUpgradeRequest(upgrade, context);
}

function http1Upgrade(
  request: IncomingMessage,
  client: Duplex,
  early: Buffer,
  { edge }: IngressContext,
): IncomingUpgrade {
  const { method = "GET", url: target = "/" } = request;
  const head = { method, target, headers: headerListOf(request.rawHeaders), socket: request.socket };
  return { origin: originOf(request.socket, edge), request: head, client, early, protocol: "http/1.1" };
}

function http2For(context: IngressContext, turns: RequestTurns): Http2Connections {
  const handlers: Http2Handlers = {
    onRequest: ({ stream, pseudo, rawHeaders, socket }) => {
      const downstream = new Http2Downstream(stream, pseudo, rawHeaders);
      const expectsContinue = pseudo.expect === "100-continue";
      const exchange = { downstream, socket, protocol: "h2", expectsContinue, mayOmitHost: false } as const;
      forwardRequest(exchange, context);
    },
    onConnect: (request) => {
      const webSocket = webSocketRequestOf(request, context.timeouts.lingerIdleMs);
      if (webSocket === undefined) {
        context.metrics.requestEnded("h2", NOT_IMPLEMENTED, undefined, undefined);
        return;
      }
      const { stream, socket } = request;
      const early = Buffer.alloc(0);
      const upgrade: IncomingUpgrade = {
        origin: originOf(socket, context.edge),
        request: webSocket,
        client: stream,
        early,
        protocol: "h2",
      };
      containAsync("listener", answerUpgrade(upgrade, context), () => abortSocket(stream));
    },
  };
  const { keepAliveMs, streamIdleMs, handshakeMs } = context.timeouts;
  return new Http2Connections(context.limits, handlers, {
    idleMs: keepAliveMs,
    takingMs: streamIdleMs,
    headMs: handshakeMs,
    turns,
  });
}

/** Tells HTTP/2 with prior knowledge from HTTP/1.1; undefined until the bytes differ. */
function beginsHttp2(seen: Buffer): boolean | undefined {
  const compared = Math.min(seen.byteLength, HTTP2_PREFACE.byteLength);
  const isAlike = seen.subarray(0, compared).equals(HTTP2_PREFACE.subarray(0, compared));
  return isAlike && compared < HTTP2_PREFACE.byteLength ? undefined : isAlike;
}

/** True for an upgrade to h2c alone, or for one with a body, which cannot switch. */
function isIgnored({ rawHeaders, headers }: IncomingMessage): boolean {
  const hasBody = headers["transfer-encoding"] !== undefined || !/^0*$/.test(headers["content-length"] ?? "");
  return hasBody || headerTokens(headerListOf(rawHeaders), "upgrade").every((name) => name === "h2c");
}

/**
 * Ignores `Upgrade: h2c`, which RFC 9113 removed, by parsing the request again without it. Node's
 * server has released the connection by then, so it gets the connection as a new one.
 */
function ignoreUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, server: HttpServer): void {
  const dropped = ["upgrade", "http2-settings"];
  const options = headerTokens(headerListOf(request.rawHeaders), "connection");
  const kept = options.filter((option) => !dropped.includes(option));
  const lines = [`${request.method} ${request.url} HTTP/1.1`];
  // Other options of Connection still concern this hop.
  if (kept.length > 0) lines.push(`Connection: ${kept.join(", ")}`);
  for (let index = 0; index + 1 < request.rawHeaders.length; index += 2) {
    const name = request.rawHeaders[index] as string;
    if (![...dropped, "connection"].includes(name.toLowerCase()))
      lines.push(`${name}: ${request.rawHeaders[index + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit("connection", socket);
}
