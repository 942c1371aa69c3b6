import type { Readable, Writable } from "node:stream";
import type { FaultPlace } from "../../observability/faults.ts";
import type { HeaderList } from "../header-list.ts";

/** The client's side of one HTTP exchange that is forwarded, whatever version of HTTP it speaks. */
export interface HttpDownstream {
  readonly method: string;
  /** The request target in origin-form. */
  readonly target: string;
  /** As received, without HTTP/2's pseudo-headers; those of one hop are still there. */
  readonly headers: HeaderList;
  readonly body: Readable;
  readonly hasBody: boolean;
  /** The body's length is not known before its end. */
  readonly isChunked: boolean;
  readonly isBodyComplete: boolean;
  /** Set when the request may not be forwarded as it is framed. */
  readonly framingProblem: string | undefined;
  /** What came behind the body. Empty before its end. */
  readonly trailers: HeaderList;
  /** Of the answer's head; 200 before it was given, as Node has it. */
  readonly status: number;
  /** The head of the answer has been given to the client. */
  readonly hasResponded: boolean;
  /** Bytes of the answer's body that were given to the client so far. What is piped to `respond`'s stream is added by its caller. */
  bodyBytes: number;
  /** The whole answer has been taken by the system. */
  readonly isFinished: boolean;
  /** Its index among the requests in flight; -1 while it is not (src/listeners/in-flight.ts). */
  inFlightIndex: number;
  /** An exception of a callback of this exchange's, on the client's side, ends the exchange by `onFailure` and nothing else. */
  contain(where: FaultPlace, onFailure: (error: unknown) => void): void;
  /** The exchange is over or the client has gone, once. At once when it is so already. */
  onClose(listener: () => void): void;
  sendContinue(): void;
  /** 1xx other than 100, to clients that know them. */
  sendInterim(status: number, statusMessage: string, headers: HeaderList): void;
  /** May the answer announce trailers? */
  canCarryTrailers(status: number, headers: HeaderList): boolean;
  /**
   * Sends the head and the beginning of the body; the rest goes to the returned stream or `write`.
   * `mayHaveTrailers`: true if absent. Throws for lines that cannot be sent.
   */
  respond(
    status: number,
    statusMessage: string,
    headers: HeaderList,
    beginning?: readonly Uint8Array[],
    mayHaveTrailers?: boolean,
  ): Writable;
  /** More of the body, in one go. */
  write(parts: readonly Uint8Array[]): void;
  /** `respond` and `finish` at once, for an answer that is there as a whole. */
  respondWhole(
    status: number,
    statusMessage: string,
    headers: HeaderList,
    body: readonly Uint8Array[],
    trailers: HeaderList,
  ): void;
  /** The system has taken all of the answer that was given so far. */
  readonly hasTakenAll: boolean;
  /** Some of it waits in the memory that it came in, which must stay as it is. */
  readonly holdsMemory: boolean;
  /** Ends the exchange when the client takes nothing of what waits for it for so many milliseconds. 0: never; the same again changes nothing. */
  expectTaking(timeoutMs: number): void;
  finish(trailers: HeaderList): void;
  /** Answered before the body was there: the client may finish sending, unheard, for so long. */
  discardBody(lingerMs: number): void;
  /** The upstream cut the answer short: the client must not take what it has for complete. */
  truncate(): void;
  /** Ends the exchange without an answer. */
  abort(): void;
  /** The client is to take another connection for its next request. */
  closeConnectionAfter(): void;
}
