import type { IncomingMessage, ServerOptions, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Limits } from "../config/limits.ts";
import type { Timeouts } from "../config/timeouts.ts";

/** Requests of one connection that wait for the answer to the one before; a client sends what is past it again, on another connection. */
export const MAX_PIPELINED_REQUESTS = 32;

const MAX_HANDSHAKE_CHECK_MS = 5_000;

/** What every HTTP/1.1 server that clients reach is made with. Its `maxHeadersCount` must be 0: Node would cut the rest without a word. */
export function http1OptionsOf(
  limits: Pick<Limits, "maxRequestHeaderBytes" | "socketBufferBytes">,
  { handshakeMs, keepAliveMs }: Pick<Timeouts, "handshakeMs" | "keepAliveMs">,
): ServerOptions {
  return {
    maxHeaderSize: limits.maxRequestHeaderBytes,
    headersTimeout: handshakeMs,
    // How often Node looks for heads that are late.
    connectionsCheckingInterval: Math.min(handshakeMs, MAX_HANDSHAKE_CHECK_MS),
    // A client's whole body may take long; only its head may not.
    requestTimeout: 0,
    keepAliveTimeout: keepAliveMs,
    highWaterMark: limits.socketBufferBytes,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 30_000,
  };
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
 * One exchange in flight per HTTP/1.1 connection. Node parses all requests that one read has brought, and would have them answered at the
 * same time: some kilobytes that nobody reads the answers to, for megabytes of answers. Those behind the first wait, and nothing more is read.
 */
export class Http1Turns {
  readonly #connections = new WeakMap<Duplex, Connection>();

  /** Calls `serve` when the answers before are over; never, when the connection ends first. */
  take(request: IncomingMessage, response: ServerResponse, serve: Serve): void {
    const { socket } = request;
    const connection = this.#connections.get(socket);
    if (connection === undefined) {
      this.#connections.set(socket, { current: response, waiting: [] });
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

  /** An answer is not out yet: an upgrade now would write between its bytes. */
  isBusy(socket: Duplex): boolean {
    const connection = this.#connections.get(socket);
    return connection !== undefined && (!connection.current.closed || connection.waiting.length > 0);
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
