import type { Socket } from "node:net";

/** One connection on which nothing is asked, for the request that may follow soon. It keeps no process running. */
export class KeptConnection {
  readonly #keptMs: number;
  readonly #onGone: () => void;
  #socket: Socket | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whatever it brings while it is kept was not asked for. */
  readonly #close = (): void => {
    const socket = this.#release();
    if (socket === undefined) return;
    socket.destroy();
    this.#onGone();
  };

  /** `keptMs`: until it is closed, well before a server would; what is sent to one that it closes might have been acted upon. */
  constructor(keptMs: number, onGone: () => void = () => {}) {
    this.#keptMs = keptMs;
    this.#onGone = onGone;
  }

  /** The socket is this one's from here on, instead of another that was kept. */
  keep(socket: Socket): void {
    this.#release()?.destroy();
    this.#socket = socket.on("data", this.#close).on("end", this.#close).on("close", this.#close).unref();
    this.#timer = setTimeout(this.#close, this.#keptMs).unref();
    if (socket.destroyed || socket.readableEnded) this.#close();
    else socket.resume();
  }

  /** What is kept, paused; it is the caller's then. */
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
