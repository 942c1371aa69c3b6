import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import type { Readable, Writable } from "node:stream";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import {
  type HeaderLines,
  type HeaderList,
  hasHeader,
  headerListOf,
} from "@sluice/client/internal/http/header-list";
import { breakStream, cancelStream, forgetTimer } from "@sluice/client/internal/net/abort-socket";
import { containEvents, type FaultPlace } from "@sluice/client/internal/observability/faults";
import { NOTHING } from "@sluice/protocols/bytes";
import { http1Lines, http2Headers, http2ResponseHeaders, receivedFields } from "../http2-headers.ts";
import { closeWhenSent } from "../watch-http2-session.ts";
import { EXPECTED_LISTENERS } from "./listener-bounds.ts";

/**
 * node:http2 sends in a later turn. Up to this size a copy from Node's pool costs less than new memory
 * for the next read.
 */
const COPIED_BYTES = 4096;

/**
 * One HTTP/2 exchange (RFC 9113 section 8). Http2Connections listens for the stream's errors, so
 * 'close' is enough here.
 */
export class Http2Downstream implements HttpDownstream {
  readonly method: string;
  /** Writable, for exchanges that are forwarded with another path. */
  target: string;
  /** `:authority` becomes Host, as in HTTP/1.1, and the crumbs of a cookie are joined (section 8.2.3). */
  readonly headers: HeaderList;
  readonly hasBody: boolean;
  readonly isChunked: boolean;
  /** nghttp2 has already checked the lengths. */
  readonly framingProblem: undefined;
  readonly #stream: ServerHttp2Stream;
  #trailers: HeaderList = [];
  #trailersToSend: HeaderList = [];
  #isHeadOnly = false;
  #isEnded = false;
  #holdsParts = false;
  #closeListeners: (() => void)[] | undefined;
  bodyBytes = 0;
  inFlightIndex = -1;
  /** Undefined before the first `expectTaking`. */
  #takingMs: number | undefined;

  constructor(stream: ServerHttp2Stream, pseudo: IncomingHttpHeaders, rawHeaders: readonly string[]) {
    this.#stream = stream;
    stream.setMaxListeners(EXPECTED_LISTENERS);
    this.method = pseudo[":method"] ?? "GET";
    this.target = pseudo[":path"] ?? "/";
    this.headers = http1Lines(rawHeaders, pseudo[":authority"]);
    this.hasBody = !stream.endAfterHeaders;
    this.isChunked = this.hasBody && !hasHeader(this.headers, "content-length");
    if (this.hasBody)
      stream.on("trailers", (_trailers: unknown, _flags: unknown, rawTrailers?: string[]) => {
        this.#trailers = headerListOf(receivedFields(rawTrailers ?? []));
      });
  }

  get body(): Readable {
    return this.#stream;
  }

  get isBodyComplete(): boolean {
    if (!this.hasBody) return true;
    // A reset ends the readable side, too; these fields distinguish it from END_STREAM.
    const { readableEnded, aborted, rstCode } = this.#stream;
    return readableEnded && !aborted && rstCode === constants.NGHTTP2_NO_ERROR;
  }

  get trailers(): HeaderList {
    return this.#trailers;
  }

  get status(): number {
    return Number(this.#stream.sentHeaders?.[":status"] ?? 200);
  }

  get hasResponded(): boolean {
    return this.#stream.headersSent;
  }

  /**
   * Node ends the stream itself when its connection is lost, so `writableFinished` alone does not mean a
   * sent answer.
   */
  get isFinished(): boolean {
    return this.#isEnded && this.#stream.writableFinished;
  }

  contain(where: FaultPlace, onFailure: (error: unknown) => void): void {
    containEvents(this.#stream, where, onFailure);
  }

  onClose(listener: () => void): void {
    if (this.#stream.destroyed) listener();
    else if (this.#closeListeners !== undefined) this.#closeListeners.push(listener);
    else {
      // One for all: node:http2 runs listeners of its own for each one that is added or removed.
      this.#closeListeners = [listener];
      this.#stream.on("close", () => {
        for (const each of this.#closeListeners ?? []) each();
      });
    }
  }

  get #isGone(): boolean {
    return this.#stream.destroyed || this.#stream.closed;
  }

  sendContinue(): void {
    if (!this.#isGone && !this.#stream.headersSent) this.#stream.additionalHeaders({ ":status": 100 });
  }

  sendInterim(status: number, _statusMessage: string, headers: HeaderList): void {
    if (this.#isGone || this.#stream.headersSent) return;
    this.#stream.additionalHeaders(http2ResponseHeaders(status, headers));
  }

  /** node:http2 ends the stream after the head of a 205, as after a 204. */
  canCarryTrailers(status: number): boolean {
    return this.method !== "HEAD" && status !== 204 && status !== 205 && status !== 304;
  }

  respond(
    status: number,
    _statusMessage: string,
    headers: HeaderLines,
    beginning: readonly Uint8Array[] = [],
    mayHaveTrailers = true,
  ): Writable {
    const stream = this.#stream;
    // The client has left: 'close' will follow, and nothing can be sent.
    if (this.#isGone) return stream;
    const isBodiless = this.#isHeadOnly || !this.canCarryTrailers(status);
    // Without trailers the last DATA frame ends the stream. With them each answer costs another frame and
    // another turn of the event loop.
    const waitForTrailers = !isBodiless && mayHaveTrailers;
    stream.respond(http2ResponseHeaders(status, headers), { endStream: isBodiless, waitForTrailers });
    // Only after `respond`, which may throw and be called again: each answer's trailers are requested once.
    if (waitForTrailers)
      stream.on("wantTrailers", () => stream.sendTrailers(http2Headers(this.#trailersToSend)));
    if (isBodiless) this.#isEnded = true;
    else this.write(beginning);
    return stream;
  }

  write(parts: readonly Uint8Array[]): void {
    // A backend may send a body for a response that must not have one in HTTP/2.
    if (this.#stream.writableEnded) return;
    for (const part of parts) {
      this.bodyBytes += part.length;
      const isCopied = part.length < COPIED_BYTES;
      if (!isCopied) this.#holdsParts = true;
      this.#stream.write(isCopied ? Buffer.from(part) : part);
    }
  }

  respondWhole(
    status: number,
    statusMessage: string,
    headers: HeaderLines,
    body: readonly Uint8Array[],
    trailers: HeaderList,
  ): void {
    // Sends one HEADERS frame with END_STREAM: gRPC distinguishes that from an answer with an empty body.
    this.#isHeadOnly = trailers.length === 0 && body.every(({ length }) => length === 0);
    this.respond(status, statusMessage, headers, body, trailers.length > 0);
    this.finish(trailers);
  }

  get holdsMemory(): boolean {
    return this.#holdsParts && !this.hasTakenAll;
  }

  /** A destroyed stream's queue is empty too, but parts of it may still be in its connection's queue. */
  get hasTakenAll(): boolean {
    return this.#stream.writableLength === 0 && !this.#stream.destroyed;
  }

  /** Uses node:http2's timer of the stream, which restarts whenever the connection takes its bytes. */
  expectTaking(timeoutMs: number): void {
    if (timeoutMs === (this.#takingMs ?? 0) || this.#stream.destroyed) return;
    if (this.#takingMs === undefined) this.onClose(() => forgetTimer(this.#stream));
    this.#takingMs = timeoutMs;
    this.#stream.setTimeout(timeoutMs);
    this.#stream.off("timeout", this.#overdue);
    if (timeoutMs > 0) this.#stream.on("timeout", this.#overdue);
  }

  readonly #overdue = (): void => {
    if (!this.hasTakenAll) cancelStream(this.#stream);
  };

  finish(trailers: HeaderList): void {
    this.#trailersToSend = trailers;
    this.#isEnded = true;
    if (!this.#stream.writableEnded) this.#stream.end();
  }

  discardBody(lingerMs: number): void {
    if (this.#isGone) return;
    const stream = this.#stream;
    stream.unpipe();
    stream.resume();
    // Section 8.1: a server that needs no more of the request may end it without an error.
    const timer = setTimeout(() => closeWhenSent(stream), lingerMs).unref();
    stream.once("close", () => clearTimeout(timer));
  }

  truncate(): void {
    const stream = this.#stream;
    // The client may keep the bytes so far. `expectTaking` limits the wait for one that takes none.
    if (stream.writableLength > 0 && stream.writable) stream.write(NOTHING, () => breakStream(stream));
    else breakStream(stream);
  }

  abort(): void {
    breakStream(this.#stream);
  }

  /** Sends GOAWAY; open streams continue. */
  closeConnectionAfter(): void {
    this.#stream.session?.close();
  }
}
