import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { Duplex } from "node:stream";
import type { TlsOptions } from "node:tls";
import type { Limits } from "../../config/sections/limits.ts";
import type { Timeouts } from "../../config/sections/timeouts.ts";
import { answerClientErrors, type UnknownMethod } from "./client-error.ts";
import { answerPlainHttp } from "./plain-http.ts";

/** Requests of one connection that wait for the answer to the one before; a client repeats further ones on another connection. */
export const MAX_PIPELINED_REQUESTS = 32;

const MAX_HEAD_CHECK_MS = 5_000;

/** What bounds the HTTP/1.1 connections of a server. */
export interface Http1Bounds {
  readonly maxHeaderBytes: number;
  /** For a request's head, checked every five seconds: 408. */
  readonly headMs: number;
  /** For a whole request; absent: a body may take long. */
  readonly requestMs?: number;
  /** A connection without a request is closed. */
  readonly keepAliveMs: number;
  /** Held of what a client does not read; absent: Node's own. */
  readonly bufferBytes?: number;
}

export interface Http1Handlers {
  /** Of each connection once, before its first request is handed over. */
  onFirstRequest?(socket: Duplex): void;
  onRequest(request: IncomingMessage, response: ServerResponse): void;
  /** Of a request that waits for 100; absent: Node answers it. */
  onExpectContinue?(request: IncomingMessage, response: ServerResponse): void;
  /** Absent: requests for an upgrade are requests as others. */
  onUpgrade?(request: IncomingMessage, socket: Duplex, early: Buffer): void;
  /** Absent: Node closes the connection. */
  onConnect?(socket: Duplex): void;
  /** Of a request that is answered 501 for its method. */
  onUnknownMethod?(request: UnknownMethod, socket: Duplex): void;
}

/** The bounds of a listener for clients. */
export function boundsOfListener(
  limits: Pick<Limits, "maxRequestHeaderBytes" | "socketBufferBytes">,
  { handshakeMs, keepAliveMs }: Pick<Timeouts, "handshakeMs" | "keepAliveMs">,
): Http1Bounds {
  return {
    maxHeaderBytes: limits.maxRequestHeaderBytes,
    headMs: handshakeMs,
    keepAliveMs,
    bufferBytes: limits.socketBufferBytes,
  };
}

/** Every HTTP/1.1 server of the program: one request of a connection at a time, in these bounds. Not yet listening. */
export function createHttp1Server(
  { maxHeaderBytes, headMs, requestMs = 0, keepAliveMs, bufferBytes }: Http1Bounds,
  { onFirstRequest, onRequest, onExpectContinue, onUpgrade, onConnect, onUnknownMethod }: Http1Handlers,
  {
    tls,
    ...options
  }: Pick<ServerOptions, "requireHostHeader"> & { readonly tls?: TlsOptions | undefined } = {},
): Server {
  const httpOptions: ServerOptions = {
    ...options,
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: headMs,
    connectionsCheckingInterval: Math.min(headMs, MAX_HEAD_CHECK_MS),
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveMs,
    ...(bufferBytes !== undefined && { highWaterMark: bufferBytes }),
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
  };
  const server =
    tls === undefined ? createServer(httpOptions) : createHttpsServer({ ...httpOptions, ...tls });
  // Heads are bounded by bytes: past a count of lines Node would drop lines without an error.
  server.maxHeadersCount = 0;
  answerClientErrors(server, maxHeaderBytes, onUnknownMethod);
  if (tls !== undefined) answerPlainHttp(server);
  const turns = new Http1Turns((socket) => onFirstRequest?.(socket));
  const serve = (request: IncomingMessage, response: ServerResponse): void =>
    request.httpVersionMajor === 1 ? onRequest(request, response) : refuseVersion(response);
  server.on("request", (request, response) => turns.take(request, response, serve));
  if (onExpectContinue !== undefined) {
    server.on("checkContinue", (request, response) => turns.take(request, response, onExpectContinue));
  }
  if (onUpgrade !== undefined) {
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, early: Buffer) => {
      if (turns.mayLeave(socket)) onUpgrade(request, socket, early);
      else socket.destroy();
    });
  }
  if (onConnect !== undefined) {
    server.on("connect", (_request, socket) => {
      if (turns.mayLeave(socket)) onConnect(socket);
      else socket.destroy();
    });
  }
  return server;
}

/** The parser also takes HTTP/0.9 and HTTP/2.0 for versions of a request line. */
function refuseVersion(response: ServerResponse): void {
  response.writeHead(505, { "Content-Type": "text/plain; charset=utf-8", Connection: "close" });
  response.end("505 HTTP Version Not Supported: unsupported protocol version");
}

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

interface Turn {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly serve: Serve;
}

interface Connection {
  current: ServerResponse;
  readonly waiting: Turn[];
}

/**
 * One exchange in flight per HTTP/1.1 connection: Node would have all requests of one read answered at once. Those behind the first
 * wait, and nothing more is read.
 */
class Http1Turns {
  readonly #connections = new WeakMap<Duplex, Connection>();
  readonly #onFirst: (socket: Duplex) => void;

  constructor(onFirst: (socket: Duplex) => void) {
    this.#onFirst = onFirst;
  }

  /** Calls `serve` when the answers before are over; never, when the connection ends first. */
  take(request: IncomingMessage, response: ServerResponse, serve: Serve): void {
    const { socket } = request;
    const connection = this.#connections.get(socket);
    if (connection === undefined) {
      this.#connections.set(socket, { current: response, waiting: [] });
      this.#onFirst(socket);
      serve(request, response);
      return;
    }
    const { current, waiting } = connection;
    if (current.closed && waiting.length === 0) {
      connection.current = response;
      serve(request, response);
      return;
    }
    if (waiting.length === MAX_PIPELINED_REQUESTS) {
      // What is behind is not answered: the connection ends behind the last that is.
      const last = waiting[waiting.length - 1] as Turn;
      last.response.shouldKeepAlive = false;
      return;
    }
    waiting.push({ request, response, serve });
    socket.pause();
    if (waiting.length === 1) current.once("close", () => this.#next(connection, socket));
  }

  /** To another protocol; false while an answer is not out yet: an upgrade now would write between its bytes. */
  mayLeave(socket: Duplex): boolean {
    const connection = this.#connections.get(socket);
    if (connection === undefined) this.#onFirst(socket);
    return connection === undefined || (connection.current.closed && connection.waiting.length === 0);
  }

  #next(connection: Connection, socket: Duplex): void {
    const { waiting } = connection;
    const turn = waiting.shift();
    // An answer that closes the connection was the last, and so is any when its client has gone.
    if (turn === undefined || !socket.writable) {
      waiting.splice(0);
      return;
    }
    connection.current = turn.response;
    if (waiting.length > 0) turn.response.once("close", () => this.#next(connection, socket));
    else socket.resume();
    turn.serve(turn.request, turn.response);
  }
}
