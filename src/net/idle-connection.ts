import type { Socket } from "node:net";

/** One idle connection for the request that may follow soon. It does not keep the process running. */
export class IdleConnection {
  readonly #idleMs: number;
  readonly #onGone: () => void;
  #socket: Socket | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Bytes on an idle connection answer no request. */
  readonly #close = (): void => {
    const socket = this.#release();
    if (socket === undefined) return;
    socket.destroy();
    this.#onGone();
  };

  /** `idleMs`: it is closed after so long, well before a server would: a request that meets a close may have been processed. */
  constructor(idleMs: number, onGone: () => void = () => {}) {
    this.#idleMs = idleMs;
    this.#onGone = onGone;
  }

  /** Takes over the socket, and closes the one that it had. */
  put(socket: Socket): void {
    this.#release()?.destroy();
    this.#socket = socket.on("data", this.#close).on("end", this.#close).on("close", this.#close).unref();
    this.#timer = setTimeout(this.#close, this.#idleMs).unref();
    if (socket.destroyed || socket.readableEnded) this.#close();
    else socket.resume();
  }

  /** The idle connection, paused. The caller owns it. */
  take(): Socket | undefined {
    return this.#release()?.pause().ref();
  }

  #release(): Socket | undefined {
    const socket = this.#socket?.off("data", this.#close).off("end", this.#close).off("close", this.#close);
    clearTimeout(this.#timer);
    this.#socket = this.#timer = undefined;
    return socket;
  }
}
