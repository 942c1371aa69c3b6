import type { Readable, Writable } from "node:stream";
import type { FaultPlace } from "../../observability/faults.ts";
import type { HeaderLines, HeaderList } from "../header-list.ts";

/** The client's side of a forwarded HTTP exchange, in any HTTP version. */
export interface HttpDownstream {
  readonly method: string;
  /** The request target in origin-form. */
  readonly target: string;
  /** The received headers, without HTTP/2's pseudo-headers but with hop-by-hop ones. */
  readonly headers: HeaderList;
  readonly body: Readable;
  readonly hasBody: boolean;
  /** True if the body's length is unknown until its end. */
  readonly isChunked: boolean;
  readonly isBodyComplete: boolean;
  /** Set if the request's framing makes it unsafe to forward. */
  readonly framingProblem: string | undefined;
  /** The trailers after the body; empty before its end. */
  readonly trailers: HeaderList;
  /** The answer's status; 200 before there is one, as in Node. */
  readonly status: number;
  /** True once the answer's head has been written. */
  readonly hasResponded: boolean;
  /**
   * Body bytes of the answer written so far. If the caller pipes to `respond`'s stream, it adds those
   * bytes itself.
   */
  bodyBytes: number;
  /** True once the kernel has taken the whole answer. */
  readonly isFinished: boolean;
  /** The index among the requests in flight; -1 if it is not among them (src/listeners/plain-requests.ts). */
  inFlightIndex: number;
  /**
   * If one of this exchange's callbacks on the client's side throws, `onFailure` ends this exchange
   * alone.
   */
  contain(where: FaultPlace, onFailure: (error: unknown) => void): void;
  /**
   * Calls back once when the exchange is over or the client has left; at once if that has already
   * happened.
   */
  onClose(listener: () => void): void;
  sendContinue(): void;
  /** Sends a 1xx other than 100, to clients that understand it. */
  sendInterim(status: number, statusMessage: string, headers: HeaderList): void;
  /** True if the answer may announce trailers. */
  canCarryTrailers(status: number, hasLength: boolean): boolean;
  /**
   * Sends the head and the beginning of the body; the rest goes to the returned stream or `write`.
   * `mayHaveTrailers` defaults to true. Throws for headers that cannot be sent.
   */
  respond(
    status: number,
    statusMessage: string,
    headers: HeaderLines,
    beginning?: readonly Uint8Array[],
    mayHaveTrailers?: boolean,
  ): Writable;
  /** Writes more of the body, all parts at once. */
  write(parts: readonly Uint8Array[]): void;
  /** `respond` and `finish` in one call, for a complete answer. */
  respondWhole(
    status: number,
    statusMessage: string,
    headers: HeaderLines,
    body: readonly Uint8Array[],
    trailers: HeaderList,
  ): void;
  /** True if the kernel has taken everything written so far. */
  readonly hasTakenAll: boolean;
  /** True while some of the answer waits in its original memory, which must not change. */
  readonly holdsMemory: boolean;
  /**
   * Ends the exchange if the client takes none of its queued bytes for `timeoutMs`. 0: never. Calling it
   * with the same value changes nothing.
   */
  expectTaking(timeoutMs: number): void;
  finish(trailers: HeaderList): void;
  /** After an early answer: for `lingerMs` the client may finish sending, and the bytes are discarded. */
  discardBody(lingerMs: number): void;
  /** The upstream cut the answer short, so the client must not take it for complete. */
  truncate(): void;
  /** Ends the exchange without an answer. */
  abort(): void;
  /** Makes the client use another connection for its next request. */
  closeConnectionAfter(): void;
}
