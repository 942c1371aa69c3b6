import type { RequestListener } from "node:http";
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { Server as NetServer } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket, TlsOptions } from "node:tls";
import { answerClientErrors, refusalText, refuseInText, type UnknownMethod } from "./client-error.ts";
import { Http1Turns } from "./http1-turns.ts";

const MAX_HEAD_CHECK_MS = 5_000;
/** Go's answers, sent before any handler runs. */
const HEAD_PROBLEMS = {
  505: "unsupported protocol version",
  400: "too many Host headers",
} as const;
type HeadProblem = keyof typeof HEAD_PROBLEMS;

/** Limits for a server's HTTP/1.1 connections. */
export interface Http1Bounds {
  readonly maxHeaderBytes: number;
  /**
   * Timeout for a request's head, checked every five seconds; answered with 408. Also for a client that
   * takes none of a refused head's answer.
   */
  readonly headMs: number;
  /** Timeout for a whole request; absent: a body may take any time. */
  readonly requestMs?: number;
  /** Timeout for a connection without a request. */
  readonly keepAliveMs: number;
  /** Timeout for a client that takes none of an answer's bytes; absent: the handlers have their own. */
  readonly takingMs?: number;
  /** Bytes buffered for a client that does not read; absent: Node's default. */
  readonly bufferBytes?: number;
}

interface Http1Handlers {
  /** Called once for each connection, before its first request. */
  onFirstRequest?(socket: Duplex): void;
  onRequest(request: IncomingMessage, response: ServerResponse): void;
  /** Called for a request with `Expect: 100-continue`; absent: Node answers it. */
  onExpectContinue?(request: IncomingMessage, response: ServerResponse): void;
  /** Absent: upgrade requests are served like others. */
  onUpgrade?(request: IncomingMessage, socket: Duplex, early: Buffer): void;
  /** Called for CONNECT. Absent: it is answered with 405. */
  onConnect?(socket: Duplex): void;
  /** Called for a request whose unknown method was answered with 501. */
  onUnknownMethod?(request: UnknownMethod, socket: Duplex): void;
}

/**
 * Creates each of the program's HTTP/1.1 servers, with these limits and one request of a connection at
 * a time. Not yet listening.
 */
export function createHttp1Server(
  { maxHeaderBytes, headMs, requestMs = 0, keepAliveMs, takingMs, bufferBytes }: Http1Bounds,
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
  // Bytes limit the heads. With a line limit Node would silently drop the lines beyond it.
  server.maxHeadersCount = 0;
  if (tls !== undefined) answerPlainHttp(server);
  const turns = new Http1Turns((socket) => onFirstRequest?.(socket));
  answerClientErrors(server, maxHeaderBytes, {
    onUnknownMethod,
    inTurn: (socket, answer) => turns.refuse(socket, answer),
    hasRequest: (socket) => turns.hasTaken(socket),
    served: tls === undefined ? "connection" : "secureConnection",
  });
  const mayRepeatHost = options.requireHostHeader === false;
  const inTurn =
    (serve: RequestListener): RequestListener =>
    (request, response) => {
      const problem = headProblemOf(request, mayRepeatHost);
      const answerMs = takingMs ?? (problem === undefined ? undefined : headMs);
      if (answerMs !== undefined) expectTaking(response, answerMs);
      turns.take(request, response, problem === undefined ? serve : () => refuseHead(response, problem));
    };
  server.on("request", inTurn(onRequest));
  if (onExpectContinue !== undefined) server.on("checkContinue", inTurn(onExpectContinue));
  /** Ends HTTP on the connection behind its earlier answers; a faulty head is refused. */
  const leave = (request: IncomingMessage, socket: Duplex, takeOver: () => void): void => {
    const problem = headProblemOf(request, mayRepeatHost);
    turns.leave(socket, () => {
      if (problem === undefined) takeOver();
      else refuseInText(socket, problem, HEAD_PROBLEMS[problem]);
    });
  };
  if (onUpgrade !== undefined) {
    server.on("upgrade", (request: IncomingMessage, socket: Duplex, early: Buffer) =>
      leave(request, socket, () => onUpgrade(request, socket, early)),
    );
  }
  // Without a listener Node would close the connection unanswered.
  const onTunnel =
    onConnect ?? ((socket: Duplex): void => refuseInText(socket, 405, "this server is not a proxy"));
  server.on("connect", (request, socket) => leave(request, socket, () => onTunnel(socket)));
  return server;
}

/**
 * Heads that Node's parser accepts and a server must refuse: HTTP/0.9, HTTP/2.0, and two Hosts (RFC
 * 9112 section 3.2).
 */
function headProblemOf(
  { httpVersionMajor, rawHeaders }: IncomingMessage,
  mayRepeatHost: boolean,
): HeadProblem | undefined {
  if (httpVersionMajor !== 1) return 505;
  if (mayRepeatHost) return undefined;
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? "";
    if (name.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  return hosts > 1 ? 400 : undefined;
}

/** Uses the timer of the response's socket, which restarts whenever the kernel takes bytes. */
function expectTaking(response: ServerResponse, timeoutMs: number): void {
  response.setTimeout(timeoutMs, () => {
    const { socket } = response;
    if (socket === null) return;
    if (socket.writableLength > 0) socket.destroy();
    else socket.setTimeout(timeoutMs);
  });
}

function refuseHead(response: ServerResponse, status: HeadProblem): void {
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8", Connection: "close" });
  response.end(refusalText(status, HEAD_PROBLEMS[status]));
}

/** The text of Go's servers, including kube-apiserver and kubelet: clients and people search for it. */
const PLAIN_HTTP_ANSWER = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/** Node stores the connection under a TLS socket here. */
type OverConnection = TLSSocket & { readonly _parent?: (Duplex & { readonly bytesWritten?: number }) | null };

/** OpenSSL's codes for a first record that is not TLS: GET, POST, HEAD or PUT; CONNECT; anything else. */
const NOT_TLS: readonly string[] = [
  "ERR_SSL_HTTP_REQUEST",
  "ERR_SSL_HTTPS_PROXY_REQUEST",
  "ERR_SSL_WRONG_VERSION_NUMBER",
];

/**
 * Like nginx, answers plain HTTP on a TLS server, and anything else that is not TLS. OpenSSL detects
 * it from the first record, so handshakes cost no more, and a failure later in one gets no answer.
 */
export function answerPlainHttp(server: NetServer): void {
  server.on("tlsClientError", (error: Error & { readonly code?: string }, socket: OverConnection) => {
    const { _parent: connection } = socket;
    if (connection?.writable !== true || !NOT_TLS.includes(error.code ?? "")) return;
    if ((connection.bytesWritten ?? 0) > 0) return;
    const destroy = (): void => void connection.destroy();
    // The client may have left, and its connection has no other 'error' listener now.
    connection.on("error", destroy);
    connection.end(PLAIN_HTTP_ANSWER, destroy);
  });
}
