import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { Http1UpstreamConnection } from "@sluice/client/internal/http/upstream/http1-upstream-connection";
import { trailersToForward } from "../hop-by-hop.ts";
import { trailerText } from "./exchange-headers.ts";

/**
 * Sends a request's body from the client to one connection, in the framing that the head announced, as
 * fast as both sides allow.
 */
export class UpstreamRequestBody {
  readonly #downstream: HttpDownstream;
  readonly #connection: Http1UpstreamConnection;
  readonly #onSent: () => void;

  /** Calls `onSent` once everything is written. */
  constructor(downstream: HttpDownstream, connection: Http1UpstreamConnection, onSent: () => void) {
    this.#downstream = downstream;
    this.#connection = connection;
    this.#onSent = onSent;
    const { body } = downstream;
    // The 'end' of an empty HTTP/2 body may have come during the dial, and does not come again.
    if (body.readableEnded) this.#end();
    else body.on("data", this.#pass).on("end", this.#end);
  }

  /** The connection can take more writes. */
  resume(): void {
    this.#downstream.body.resume();
  }

  /** Stops reading and sending. */
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
    // The body of a reset HTTP/2 stream ends, too, but the upstream must not take it for complete.
    if (!isBodyComplete) return;
    if (isChunked) this.#connection.write(`0\r\n${trailerText(trailersToForward(trailers))}`);
    this.#onSent();
  };
}
