import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

/**
 * Requests of one connection that wait for an earlier answer. Past it the connection ends behind
 * the last answer.
 */
const MAX_PIPELINED_REQUESTS = 32;

interface Turn {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly serve: RequestListener;
}

interface Connection {
  current: Pick<Turn, "request" | "response">;
  readonly waiting: Turn[];
  /** Called after the last answer, when the connection leaves HTTP. */
  last?: () => void;
  /** Node's listeners, which resume a slow client's answer; an upgrade takes them away. */
  readonly onDrain: readonly (() => void)[];
}

/** Node stores here whether to read on once the answers have drained: an upgraded client's bytes would be lost. */
type PausedSocket = Duplex & { _paused?: boolean };

/**
 * Serves one request of an HTTP/1.1 connection at a time; Node would serve all requests of a read
 * at once. Later requests wait, and reading stops.
 */
export class Http1Turns {
  readonly #connections = new WeakMap<Duplex, Connection>();
  readonly #onFirst: (socket: Duplex) => void;

  constructor(onFirst: (socket: Duplex) => void) {
    this.#onFirst = onFirst;
  }

  /** Whether the connection has had a request. */
  hasTaken(socket: Duplex): boolean {
    return this.#connections.has(socket);
  }

  /** Calls `serve` when the earlier answers are done; never, if the connection ends first. */
  take(request: IncomingMessage, response: ServerResponse, serve: RequestListener): void {
    const { socket } = request;
    const connection = this.#connections.get(socket);
    if (connection === undefined) {
      const onDrain = socket.listeners("drain") as (() => void)[];
      this.#connections.set(socket, { current: { request, response }, waiting: [], onDrain });
      this.#onFirst(socket);
      serve(request, response);
      return;
    }
    const { current, waiting } = connection;
    if (isIdle(connection)) {
      connection.current = { request, response };
      serve(request, response);
      return;
    }
    if (waiting.length === MAX_PIPELINED_REQUESTS) {
      // Further requests get no answer: the connection closes after the last one that does.
      const last = waiting[waiting.length - 1] as Turn;
      last.response.shouldKeepAlive = false;
      return;
    }
    waiting.push({ request, response, serve });
    socket.pause();
    if (waiting.length === 1) current.response.once("close", () => this.#next(connection, socket));
  }

  /**
   * Calls `takeOver` when the earlier answers are done, as the connection's last turn; never, if the
   * connection ends first. Earlier it would write between their bytes.
   */
  leave(socket: Duplex, takeOver: () => void): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined) this.#onFirst(socket);
    // An ignored upgrade comes back as a new connection, so its old turns are forgotten first.
    if (connection === undefined || isIdle(connection)) {
      this.#connections.delete(socket);
      takeOver();
      return;
    }
    const ignore = (): void => {};
    // Node has left the socket: without a listener an error would end the process.
    socket.on("error", ignore);
    (socket as PausedSocket)._paused = false;
    for (const listener of connection.onDrain) socket.on("drain", listener);
    // Or nothing would end an answer that its client does not read.
    const overdue = (): void => void connection.current.response.emit("timeout", socket);
    socket.on("timeout", overdue);
    this.#setLast(connection, socket, () => {
      socket.off("error", ignore).off("timeout", overdue);
      for (const listener of connection.onDrain) socket.off("drain", listener);
      // Node's timeout for an idle connection began with the last answer.
      (socket as Socket).setTimeout(0);
      this.#connections.delete(socket);
      takeOver();
    });
  }

  /** Calls `answer` for what Node's parser refused: at once if the present request itself is faulty, else in its turn. */
  refuse(socket: Duplex, answer: () => void): void {
    const connection = this.#connections.get(socket);
    if (connection === undefined || isIdle(connection) || !connection.current.request.complete) {
      answer();
      return;
    }
    socket.pause();
    // A later request may have come without the rest of its body.
    if (connection.waiting.at(-1)?.request.complete === false) connection.waiting.pop();
    this.#setLast(connection, socket, answer);
  }

  #setLast(connection: Connection, socket: Duplex, last: () => void): void {
    if (connection.last !== undefined) return;
    connection.last = last;
    if (connection.waiting.length === 0)
      connection.current.response.once("close", () => this.#next(connection, socket));
  }

  #next(connection: Connection, socket: Duplex): void {
    const { waiting } = connection;
    const turn = waiting.shift();
    // An answer that closes the connection was the last one, and so was any answer if the client has left.
    if (!socket.writable) {
      waiting.splice(0);
      return;
    }
    if (turn === undefined) {
      connection.last?.();
      return;
    }
    connection.current = turn;
    if (waiting.length > 0 || connection.last !== undefined)
      turn.response.once("close", () => this.#next(connection, socket));
    else socket.resume();
    turn.serve(turn.request, turn.response);
  }
}

function isIdle({ current, waiting, last }: Connection): boolean {
  return current.response.closed && waiting.length === 0 && last === undefined;
}
