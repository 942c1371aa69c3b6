import type { Socket } from "node:net";

/** Keeps one idle connection for a request that may follow soon. It does not keep the process alive. */
export class IdleConnection {
  readonly #idleMs: number;
  readonly #onGone: () => void;
  #socket: Socket | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** On an idle connection bytes cannot be an answer, so they close it, too. */
  readonly #close = (): void => {
    const socket = this.#release();
    if (socket === undefined) return;
    socket.destroy();
    this.#onGone();
  };

  /**
   * `idleMs`: after this long the connection is closed, well before servers do: a request that meets a
   * close may have been processed.
   */
  constructor(idleMs: number, onGone: () => void = () => {}) {
    this.#idleMs = idleMs;
    this.#onGone = onGone;
  }

  /** Keeps this socket and closes the previous one. */
  put(socket: Socket): void {
    this.#release()?.destroy();
    this.#socket = socket.on("data", this.#close).on("end", this.#close).on("close", this.#close).unref();
    this.#timer = setTimeout(this.#close, this.#idleMs).unref();
    if (socket.destroyed || socket.readableEnded) this.#close();
    else socket.resume();
  }

  /** Returns the idle connection, paused. The caller then owns it. */
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
