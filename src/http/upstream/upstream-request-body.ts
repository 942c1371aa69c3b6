import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { type HeaderList, isHeaderName, isHeaderValue } from "@sluice/client/internal/http/header-list";
import type { Http1UpstreamConnection } from "@sluice/client/internal/http/upstream/http1-upstream-connection";
import { trailersToForward } from "../forwarded-headers.ts";
import type { watchBody } from "./silent-body.ts";

/**
 * Smaller parts wait until the end of the turn, and until the kernel has taken the earlier ones, and
 * leave as one: a client may send thousands of one byte.
 */
const SMALL_PART_BYTES = 4 * 1024;
/** This many bytes of small parts do not wait. */
const GATHER_BYTES = 16 * 1024;
/** Each waiting part takes half a KiB more than its bytes. This many become one. */
const GATHERED_PARTS = 256;

/**
 * Sends a request's body from the client to one connection, in the framing that the head announced, as
 * fast as both sides allow.
 */
export class UpstreamRequestBody {
  readonly #downstream: HttpDownstream;
  readonly #connection: Http1UpstreamConnection;
  readonly #onSent: () => void;
  #gathered: Buffer[] = [];
  #gatheredBytes = 0;
  /** Hears of each part; see watchBody. */
  watch: ReturnType<typeof watchBody>;
  /** The head was written, perhaps with a small body. */
  #hasBegun = false;
  #isWaiting = false;

  /**
   * Calls `onSent` once everything is written. Takes over the corked connection, so that a small
   * body leaves with its head.
   */
  constructor(downstream: HttpDownstream, connection: Http1UpstreamConnection, onSent: () => void) {
    this.#downstream = downstream;
    this.#connection = connection;
    this.#onSent = onSent;
    const { body } = downstream;
    setImmediate(() => {
      this.#flush();
      this.#hasBegun = true;
      connection.uncork();
    });
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
    this.#gathered = [];
    this.#gatheredBytes = 0;
    this.#downstream.body.off("data", this.#pass).off("end", this.#end);
  }

  readonly #pass = (part: Buffer): void => {
    this.watch?.heard();
    if (part.length === 0) return;
    this.#gathered.push(part);
    this.#gatheredBytes += part.length;
    if (part.length >= SMALL_PART_BYTES || this.#gatheredBytes >= GATHER_BYTES) this.#flush();
    else if (this.#gathered.length >= GATHERED_PARTS) this.#gathered = [Buffer.concat(this.#gathered)];
    else this.#wait();
  };

  /** One wait at a time, which the first part begins. */
  #wait(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    setImmediate(() => {
      if (this.#hasBegun && this.#connection.hasQueue) this.#connection.onceTaken(this.#waited);
      else this.#waited();
    });
  }

  readonly #waited = (): void => {
    this.#isWaiting = false;
    this.#flush();
  };

  readonly #flush = (): void => {
    const gathered = this.#gathered;
    const [first] = gathered;
    if (first === undefined) return;
    const part = gathered.length === 1 ? first : Buffer.concat(gathered, this.#gatheredBytes);
    this.#gathered = [];
    this.#gatheredBytes = 0;
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
    this.#flush();
    this.stop();
    const { isChunked, isBodyComplete, trailers } = this.#downstream;
    // The body of a reset HTTP/2 stream ends, too, but the upstream must not take it for complete.
    if (!isBodyComplete) return;
    if (isChunked) this.#connection.write(`0\r\n${trailerText(trailersToForward(trailers))}`);
    this.#onSent();
  };
}

/** The trailers after a body's last chunk, and the empty line. Drops invalid lines. */
function trailerText(trailers: HeaderList): string {
  let text = "";
  for (const [name, value] of trailers) {
    if (isHeaderName(name) && isHeaderValue(value)) text += `${name}: ${value}\r\n`;
  }
  return `${text}\r\n`;
}
