import type { IncomingMessage, Server, ServerResponse } from "node:http";

/**
 * The plain requests that a server is answering, so that a shutdown can wait for them. Those that have no end of their own, watches and
 * followed logs, are not waited for: their clients ask again elsewhere.
 */
export class PlainRequests {
  readonly #server: Server;
  readonly #emptied: (() => void)[] = [];
  readonly #inFlight = new Set<ServerResponse>();
  #isDraining = false;

  constructor(server: Server) {
    this.#server = server;
    server.prependListener("request", (request: IncomingMessage, response: ServerResponse) => {
      // A connection that is kept would bring another request each time.
      if (this.#isDraining) response.shouldKeepAlive = false;
      if (isLongRunning(request.url ?? "")) return;
      this.#inFlight.add(response);
      response.once("close", () => this.#over(response));
    });
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  /** Each connection is closed after its next answer. To be called when sessions begin to drain. */
  drain(): void {
    this.#isDraining = true;
    for (const response of this.#inFlight) response.shouldKeepAlive = false;
  }

  /** Takes no new connections, and resolves when the last answer is out or after `timeoutMs`. To be called after `drain`. */
  finish(timeoutMs: number): Promise<void> {
    this.#server.close();
    if (this.#inFlight.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#emptied.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #over(response: ServerResponse): void {
    this.#inFlight.delete(response);
    if (this.#inFlight.size === 0) for (const resolve of this.#emptied.splice(0)) resolve();
  }
}

/** By its URL, as kube-apiserver's long-running check: `watch=true`, `follow=true`, and paths below a version's `/watch/`. */
function isLongRunning(url: string): boolean {
  return /[?&](watch|follow)=(true|1)(&|$)/.test(url) || /^\/apis?\/[^?]*\/watch\//.test(url);
}
