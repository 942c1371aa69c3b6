import { createServer, type Server, type ServerResponse } from "node:http";
import { listen } from "./http/loopback.ts";

/**
 * An HTTP/1.1 backend that holds every response until it is released: `/late` before its head,
 * `/begun` after its first half.
 */
export class HeldBackend {
  readonly held: ServerResponse[] = [];
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => {
      this.held.push(response);
      if (request.url === "/begun") response.write(FIRST_HALF);
    });
  }

  listen(): Promise<number> {
    return listen(this.#server);
  }

  release(): void {
    for (const response of this.held.splice(0)) {
      if (!response.headersSent) response.write(FIRST_HALF);
      response.end(SECOND_HALF);
    }
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

const FIRST_HALF = "first half, ".repeat(5_000);
const SECOND_HALF = "second half".repeat(5_000);
export const WHOLE_BODY: string = FIRST_HALF + SECOND_HALF;
