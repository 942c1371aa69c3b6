import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import {
  createServer as createHttp2Server,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import { createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  createServer as createTlsServer,
  type SecureContext,
  type TLSSocket,
  type Server as TlsServer,
} from "node:tls";
import { capConnections } from "../gateway/connection-cap.ts";
import { Http1Downstream } from "../upstream/http1-downstream.ts";
import { Http2Downstream } from "../upstream/http2-downstream.ts";
import { forwardRequest, originOf } from "./forward-request.ts";
import { forwardUpgradeRequest } from "./forward-upgrade-request.ts";
import type { IngressContext } from "./ingress-context.ts";
import { forwardWebSocketStream } from "./websocket-over-http2.ts";

/** The first bytes of a client that speaks HTTP/2 without having asked (RFC 9113 section 3.4). */
const HTTP2_PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export interface IngressServers {
  /** HTTP/1.1, and HTTP/2 with prior knowledge. */
  readonly plain: Server;
  /** HTTP/1.1 and HTTP/2 as negotiated. */
  readonly secure: TlsServer;
  /** Takes no new connections, closes idle ones, and tells HTTP/2 clients to go; requests in flight go on. */
  drain(): void;
  /** Ends what is left. */
  destroyConnections(): void;
}

/** The listeners of the front door, not yet listening. `contextFor` finds the certificate of a server name; no name gets the default. */
export function createIngressServers(
  context: IngressContext,
  defaultTls: { readonly cert: string; readonly key: string },
  contextFor: (serverName: string | undefined) => SecureContext,
): IngressServers {
  const http1 = createHttp1(context);
  const http2 = createHttp2(context);
  const { limits, timeouts, edge } = context;
  const cap = (server: Server): void =>
    capConnections(server, {
      maxConnectionsPerAddress: limits.maxConnectionsPerAddress,
      isExempt: (address) => edge.isTrustedProxy(address),
      onRefused: () => context.onConnectionRefused(),
    });
  const plain = createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
    sniff(socket, timeouts.handshakeMs, (isHttp2) => (isHttp2 ? http2 : http1).emit("connection", socket));
  });
  const secure = createTlsServer({
    ...defaultTls,
    ALPNProtocols: ["h2", "http/1.1"],
    minVersion: "TLSv1.2",
    handshakeTimeout: timeouts.handshakeMs,
    SNICallback: (name, done) => done(null, contextFor(name)),
    noDelay: true,
  });
  secure.on("secureConnection", (socket: TLSSocket) => {
    if (socket.alpnProtocol === "h2") http2.emit("connection", socket);
    else http1.emit("connection", socket);
  });
  const sockets = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  for (const server of [plain, secure]) {
    cap(server);
    server.on("connection", (socket: Socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
  }
  http2.on("session", (session: ServerHttp2Session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  return {
    plain,
    secure,
    drain: () => {
      for (const server of [plain, secure]) server.close();
      http1.closeIdleConnections();
      for (const session of sessions) session.close();
    },
    destroyConnections: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function createHttp1(context: IngressContext): HttpServer {
  const { limits, timeouts } = context;
  const server = createHttpServer({
    maxHeaderSize: limits.maxRequestHeaderBytes,
    headersTimeout: timeouts.handshakeMs,
    requestTimeout: 0,
    highWaterMark: limits.socketBufferBytes,
    // Read and answered by us: Node's own answer has no body.
    requireHostHeader: false,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
  });
  server.maxHeadersCount = limits.maxRequestHeaders;
  const forward = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void => {
    void forwardRequest(
      {
        ...originOf(request.socket),
        downstream: new Http1Downstream(request, response),
        protocol: "http/1.1",
        expectsContinue,
        handOver: (gateway, target) => {
          request.url = target;
          gateway.handleRequest(request, response);
        },
      },
      context,
    );
  };
  server.on("request", (request, response) => forward(request, response, false));
  server.on("checkContinue", (request, response) => forward(request, response, true));
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (request.headers.upgrade?.toLowerCase() === "h2c") ignoreUpgrade(request, socket, head, server);
    else void forwardUpgradeRequest(request, socket, head, context);
  });
  // Without a listener Node would close the connection without a word.
  server.on("connect", (_request, socket) => {
    socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  });
  return server;
}

function createHttp2(context: IngressContext): Http2Server {
  const { limits } = context;
  const server = createHttp2Server({
    settings: {
      enableConnectProtocol: true,
      maxConcurrentStreams: MAX_STREAMS_PER_CONNECTION,
      maxHeaderListSize: limits.maxRequestHeaderBytes,
    },
    maxHeaderListPairs: limits.maxRequestHeaders,
    maxSessionInvalidFrames: 10,
    maxSessionRejectedStreams: 100,
  });
  server.on(
    "stream",
    (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, rawHeaders: string[]) => {
      const { socket } = stream.session ?? {};
      if (socket === undefined) return;
      if (headers[":method"] === "CONNECT") {
        void forwardWebSocketStream(stream, headers, rawHeaders, originOf(socket as Socket), context);
        return;
      }
      void forwardRequest(
        {
          ...originOf(socket as Socket),
          downstream: new Http2Downstream(stream, headers, rawHeaders),
          protocol: "h2",
          expectsContinue: headers.expect === "100-continue",
          handOver: () => stream.close(),
        },
        context,
      );
    },
  );
  server.on("sessionError", () => {});
  return server;
}

/** Streams of one HTTP/2 connection at a time; more wait at the client. */
export const MAX_STREAMS_PER_CONNECTION = 250;

/** Tells HTTP/2 with prior knowledge from HTTP/1.1 by the first bytes, which stay to be read. */
function sniff(socket: Socket, timeoutMs: number, decide: (isHttp2: boolean) => void): void {
  let seen = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  const done = (): void => {
    clearTimeout(timer);
    socket.off("data", onData).off("end", onEnd).off("close", onEnd);
  };
  const onEnd = (): void => {
    done();
    socket.destroy();
  };
  const onData = (chunk: Buffer): void => {
    seen = Buffer.concat([seen, chunk]);
    const compared = Math.min(seen.byteLength, HTTP2_PREFACE.byteLength);
    const isAlike = seen.subarray(0, compared).equals(HTTP2_PREFACE.subarray(0, compared));
    if (isAlike && compared < HTTP2_PREFACE.byteLength) return;
    done();
    socket.pause();
    socket.unshift(seen);
    decide(isAlike);
    // An HTTP/2 session takes what is buffered by itself, later; flowing now would lose it.
    if (!isAlike) socket.resume();
  };
  socket.on("data", onData).on("end", onEnd).on("close", onEnd);
  socket.on("error", () => socket.destroy());
}

/**
 * `Upgrade: h2c` is an offer that a server may ignore (RFC 9113 took it away): the request is read again without it. Node's server has let
 * the connection go by then, so it is given back as a new one.
 */
function ignoreUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer, server: HttpServer): void {
  const dropped = ["upgrade", "http2-settings", "connection"];
  const lines = [`${request.method} ${request.url} HTTP/1.1`];
  for (let index = 0; index + 1 < request.rawHeaders.length; index += 2) {
    const name = request.rawHeaders[index] as string;
    if (!dropped.includes(name.toLowerCase())) lines.push(`${name}: ${request.rawHeaders[index + 1]}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit("connection", socket);
}
