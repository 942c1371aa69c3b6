import type { Server, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { settlesWithin } from "./settles-within.ts";

/** So long after it was accepted a connection is new, and its first request may be on its way: Go's http.Server waits as long. */
export const FIRST_REQUEST_MS = 5_000;

/** The connections of a listener that have brought no request yet. A shutdown waits for those that are new: their clients cannot know. */
export class UnusedConnections {
  /** When each was accepted, the oldest first. */
  readonly #acceptedMs = new Map<Connection, number>();
  #onNone = (): void => {};

  /** To be called before connections are accepted. */
  watch(server: Server): void {
    server.on("connection", (socket: Socket) => {
      const connection = connectionOf(socket);
      this.#acceptedMs.set(connection, performance.now());
      socket.once("close", () => this.#forget(connection));
    });
  }

  /** Its first request has come, or it speaks HTTP/2, which has GOAWAY; `socket` may be the TLS of the one that was accepted. */
  used(socket: Duplex): void {
    this.#forget(connectionOf(socket as Socket));
  }

  /** Resolves when no new connection is left without a request, or after `timeoutMs`. To be called once nothing is accepted any more. */
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

/** By its peer: requests over TLS come on another object than was accepted. A Unix socket has no address, and is itself. */
type Connection = string | Socket;

function connectionOf(socket: Socket): Connection {
  const { remoteAddress, remotePort } = socket;
  return remotePort === undefined ? socket : `${remoteAddress} ${remotePort}`;
}
