import type { Duplex } from "node:stream";

/** Stops reading a connection while any stream holds it. SPDY and WebSocket have no other backpressure. */
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
