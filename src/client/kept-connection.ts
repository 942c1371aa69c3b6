import type { Socket } from "node:net";
import type { UpstreamEndpoint } from "../net/dial.ts";

/** So short that no server has given up an idle connection yet: what is sent to one that it closes might have been acted upon. */
const KEPT_MS = 1_000;

/** One connection whose last answer was whole, for the request that follows at once: a session in the pod that was read before it. */
export class KeptConnection {
  #socket: Socket | undefined;
  #endpoint: UpstreamEndpoint | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whatever it brings while it is kept was not asked for. */
  readonly #close = (): void => this.#release()?.destroy() as undefined;

  /** The socket is this one's from here on; it keeps no process running. */
  keep(socket: Socket, endpoint: UpstreamEndpoint): void {
    this.#close();
    if (socket.destroyed || socket.readableEnded) return void socket.destroy();
    this.#socket = socket.on("data", this.#close).on("end", this.#close).on("close", this.#close).unref();
    this.#endpoint = endpoint;
    this.#timer = setTimeout(this.#close, KEPT_MS).unref();
    socket.resume();
  }

  /** A connection to just that endpoint, paused, which is the caller's then. */
  take(endpoint: UpstreamEndpoint): Socket | undefined {
    return this.#endpoint === endpoint ? this.#release()?.pause().ref() : undefined;
  }

  #release(): Socket | undefined {
    const socket = this.#socket?.off("data", this.#close).off("end", this.#close).off("close", this.#close);
    clearTimeout(this.#timer);
    this.#socket = this.#endpoint = this.#timer = undefined;
    return socket;
  }
}
