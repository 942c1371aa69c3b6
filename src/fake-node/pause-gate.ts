import type { Duplex } from "node:stream";

/** Keeps a connection unread while it is held: the only backpressure that SPDY and WebSocket have. */
export class PauseGate {
  readonly #socket: Duplex;
  readonly #holders = new Set<unknown>();

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  hold(holder: unknown): void {
    this.#holders.add(holder);
    this.#socket.pause();
  }

  release(holder: unknown): void {
    if (this.#holders.delete(holder) && this.#holders.size === 0) this.#socket.resume();
  }
}
