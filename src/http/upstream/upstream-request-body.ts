import type { HttpDownstream } from "../downstream/http-downstream.ts";
import { trailersToForward } from "../hop-by-hop.ts";
import type { Http1UpstreamConnection } from "./http1-upstream-connection.ts";
import { trailerText } from "./upstream-request-head.ts";

/** A request's body on its way from the client to one connection, framed as the head has announced, no faster than either side. */
export class UpstreamRequestBody {
  readonly #downstream: HttpDownstream;
  readonly #connection: Http1UpstreamConnection;
  readonly #onSent: () => void;

  /** `onSent` is called when all has been written. */
  constructor(downstream: HttpDownstream, connection: Http1UpstreamConnection, onSent: () => void) {
    this.#downstream = downstream;
    this.#connection = connection;
    this.#onSent = onSent;
    const { body } = downstream;
    // An empty HTTP/2 body may have ended while the upstream was dialled, and does not end twice.
    if (body.readableEnded) this.#end();
    else body.on("data", this.#pass).on("end", this.#end);
  }

  /** The connection has room again. */
  resume(): void {
    this.#downstream.body.resume();
  }

  /** Nothing more is taken or sent. */
  stop(): void {
    this.#downstream.body.off("data", this.#pass).off("end", this.#end);
  }

  readonly #pass = (part: Buffer): void => {
    if (part.length === 0) return;
    const connection = this.#connection;
    if (this.#downstream.isChunked) {
      connection.cork();
      connection.write(`${part.length.toString(16)}\r\n`);
      connection.write(part);
      connection.write("\r\n");
      if (!connection.uncork()) this.#downstream.body.pause();
    } else if (!connection.write(part)) {
      this.#downstream.body.pause();
    }
  };

  readonly #end = (): void => {
    this.stop();
    const { isChunked, isBodyComplete, trailers } = this.#downstream;
    // Of an HTTP/2 stream that was reset the body ends, too: to the upstream it must not.
    if (!isBodyComplete) return;
    if (isChunked) this.#connection.write(`0\r\n${trailerText(trailersToForward(trailers))}`);
    this.#onSent();
  };
}
