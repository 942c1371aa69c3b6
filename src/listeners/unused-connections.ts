import type { Server, Socket } from "node:net";
import type { Duplex } from "node:stream";

/**
 * How long a drain waits for an accepted connection's first request, as in Go's http.Server. Past
 * it the connection is closed.
 */
const FIRST_REQUEST_MS = 5_000;

/**
 * A listener's connections that have not sent a request yet. A shutdown waits for new ones, because
 * their clients cannot know about it.
 */
export class UnusedConnections {
  /** Acceptance times, in ascending order. */
  readonly #acceptedMs = new Map<Connection, number>();
  #onNone = (): void => {};

  /** Call before connections are accepted. */
  watch(server: Server): void {
    server.on("connection", (socket: Socket) => {
      const connection = connectionOf(socket);
      this.#acceptedMs.set(connection, performance.now());
      socket.once("close", () => this.#forget(connection));
    });
  }

  /**
   * Its first request has arrived, or it speaks HTTP/2, which has GOAWAY. `socket` may be the TLS
   * socket over the accepted socket.
   */
  used(socket: Duplex): void {
    this.#forget(connectionOf(socket as Socket));
  }

  /**
   * Resolves when every new connection has sent a request, or after `timeoutMs`. Call this once no
   * more connections are accepted.
   */
  async whenUsed(timeoutMs: number): Promise<void> {
    const nowMs = performance.now();
    let newForMs = 0;
    for (const [connection, acceptedMs] of this.#acceptedMs) {
      newForMs = acceptedMs + FIRST_REQUEST_MS - nowMs;
      if (newForMs <= 0) this.#acceptedMs.delete(connection);
    }
    if (this.#acceptedMs.size === 0) return;
    const none = new Promise<void>((resolve) => {
      this.#onNone = resolve;
    });
    await settlesWithin(none, Math.min(newForMs, timeoutMs));
  }

  #forget(connection: Connection): void {
    if (this.#acceptedMs.delete(connection) && this.#acceptedMs.size === 0) this.#onNone();
  }
}

/**
 * The peer's address, because TLS requests arrive on another object than the accepted socket. A Unix
 * socket has no address, so it is its own key.
 */
type Connection = string | Socket;

function connectionOf(socket: Socket): Connection {
  const { remoteAddress, remotePort } = socket;
  return remotePort === undefined ? socket : `${remoteAddress} ${remotePort}`;
}

/** Resolves with true if `promise` is fulfilled in time. `promise` must not reject. */
export function settlesWithin(promise: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), timeoutMs);
    void promise.then(() => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
