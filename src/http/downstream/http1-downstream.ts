import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable, Writable } from "node:stream";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import {
  flatHeaders,
  type HeaderLines,
  type HeaderList,
  hasHeader,
  headerListOf,
} from "@sluice/client/internal/http/header-list";
import { containEvents, type FaultPlace } from "@sluice/client/internal/observability/faults";
import { NOTHING } from "@sluice/protocols/bytes";
import { EXPECTED_LISTENERS } from "./listener-bounds.ts";

/**
 * Beyond this size a gathered write of head and body is cheaper than joining them; libuv's own
 * stack buffer is 16 KiB.
 */
const MAX_BYTES_AS_TEXT = 8 * 1024;

/** An HTTP/1.x exchange on Node's server. Headers keep their order, case and repetitions. */
export class Http1Downstream implements HttpDownstream {
  readonly method: string;
  /** Writable, for exchanges that are forwarded with another path. */
  target: string;
  readonly headers: HeaderList;
  readonly hasBody: boolean;
  readonly isChunked: boolean;
  readonly framingProblem: string | undefined;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #closeListeners: (() => void)[] | undefined;
  #sentHeaders: HeaderLines = [];
  bodyBytes = 0;
  inFlightIndex = -1;
  #takingMs = 0;
  #holdsParts = false;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
    request.setMaxListeners(EXPECTED_LISTENERS);
    response.setMaxListeners(EXPECTED_LISTENERS);
    const { "content-length": length, "transfer-encoding": coding } = request.headers;
    this.method = request.method ?? "GET";
    this.target = request.url ?? "/";
    this.headers = headerListOf(request.rawHeaders);
    this.isChunked = coding !== undefined;
    this.hasBody = this.isChunked || (length !== undefined && length !== "0");
    if (coding !== undefined && coding.toLowerCase() !== "chunked")
      this.framingProblem = "unsupported transfer encoding";
  }

  get body(): Readable {
    return this.#request;
  }

  get isBodyComplete(): boolean {
    return this.#request.complete;
  }

  get trailers(): HeaderList {
    return headerListOf(this.#request.rawTrailers);
  }

  get status(): number {
    return this.#response.statusCode;
  }

  get hasResponded(): boolean {
    return this.#response.headersSent;
  }

  get isFinished(): boolean {
    return this.#response.writableFinished;
  }

  contain(where: FaultPlace, onFailure: (error: unknown) => void): void {
    if (this.hasBody) containEvents(this.#request, where, onFailure);
    containEvents(this.#response, where, onFailure);
  }

  onClose(listener: () => void): void {
    if (this.#response.destroyed || this.#response.closed) {
      listener();
      return;
    }
    if (this.#closeListeners !== undefined) {
      this.#closeListeners.push(listener);
      return;
    }
    this.#closeListeners = [listener];
    // Several of these events may report the same end.
    const closed = (): void => {
      const listeners = this.#closeListeners ?? [];
      this.#closeListeners = undefined;
      for (const each of listeners) each();
    };
    this.#request.on("error", closed);
    this.#response.on("error", closed);
    this.#response.on("close", closed);
  }

  sendContinue(): void {
    this.#response.writeContinue();
  }

  /**
   * Writes to the socket, because Node's writeEarlyHints lower-cases names and refuses unknown ones.
   * Only the connection's current response has `response.socket`, so pipelined answers keep their order.
   */
  sendInterim(status: number, statusMessage: string, headers: HeaderList): void {
    const { socket } = this.#response;
    // HTTP/1.0 does not define interim responses.
    if (this.#response.headersSent || socket === null || this.#request.httpVersionMinor === 0) return;
    const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`HTTP/1.1 ${status} ${statusMessage}\r\n${lines.join("")}\r\n`, "latin1");
  }

  canCarryTrailers(status: number, hasLength: boolean): boolean {
    return this.#request.httpVersionMinor > 0 && this.#hasContent(status) && !hasLength;
  }

  #hasContent(status: number): boolean {
    return this.method !== "HEAD" && status !== 204 && status !== 304;
  }

  respond(
    status: number,
    statusMessage: string,
    headers: HeaderLines,
    beginning?: readonly Uint8Array[],
  ): Writable {
    const response = this.#response;
    const { socket } = response;
    if (!this.#hasContent(status)) {
      this.#writeHead(status, statusMessage, headers);
      response.end();
      return response;
    }
    if (beginning === undefined) {
      // The head leaves together with anything else in this turn. The socket is corked, not the response:
      // since Node 22 a corked response that ends sends its last chunk before the corked bytes.
      socket?.cork();
      this.#writeHead(status, statusMessage, headers);
      response.write(NOTHING);
      setImmediate(() => socket?.uncork());
      return response;
    }
    socket?.cork();
    this.#writeHead(status, statusMessage, headers);
    if (beginning.length === 0) response.write(NOTHING);
    for (const part of beginning) this.#writeBody(part);
    socket?.uncork();
    return response;
  }

  write(parts: readonly Uint8Array[]): void {
    // An h2c backend may send a body for a response that must not have one.
    if (this.#response.writableEnded) return;
    const { socket } = this.#response;
    // Without the cork Node would keep the bytes, and their memory, until the end of the turn.
    socket?.cork();
    for (const part of parts) this.#writeBody(part);
    socket?.uncork();
  }

  respondWhole(
    status: number,
    statusMessage: string,
    headers: HeaderLines,
    body: readonly Uint8Array[],
    trailers: HeaderList,
  ): void {
    const response = this.#response;
    const { socket } = response;
    const [only] = body;
    socket?.cork();
    this.#writeHead(status, statusMessage, headers);
    // As text, the body joins the head in one buffer.
    if (body.length === 1 && only !== undefined && only.length <= MAX_BYTES_AS_TEXT) {
      this.bodyBytes += only.length;
      const { buffer, byteOffset, byteLength } = only;
      response.write(Buffer.from(buffer, byteOffset, byteLength).toString("latin1"), "latin1");
    } else for (const part of body) this.#writeBody(part);
    // With chunks, the last chunk joins this write. Otherwise `end` would only send an empty buffer.
    if (!response.chunkedEncoding) socket?.uncork();
    this.finish(trailers);
  }

  get hasTakenAll(): boolean {
    return this.#response.writableLength === 0 && !this.#response.destroyed;
  }

  get holdsMemory(): boolean {
    return this.#holdsParts && !this.hasTakenAll;
  }

  /** Uses Node's timer of the socket, which restarts whenever the kernel takes bytes, even within a write. */
  expectTaking(timeoutMs: number): void {
    const { socket } = this.#request;
    if (timeoutMs === this.#takingMs || socket.destroyed) return;
    if (this.#takingMs === 0) this.#response.once("close", () => this.expectTaking(0));
    this.#response.off("timeout", this.#overdue);
    this.#takingMs = timeoutMs;
    if (timeoutMs > 0) this.#response.on("timeout", this.#overdue);
    // After a finished answer, the next user of the socket has already set its own timeout.
    if (!this.#response.writableFinished) socket.setTimeout(timeoutMs);
  }

  readonly #overdue = (): void => {
    if (!this.hasTakenAll) this.#request.socket.destroy();
  };

  #writeBody(part: Uint8Array): void {
    this.bodyBytes += part.length;
    this.#holdsParts = true;
    this.#response.write(part);
  }

  #writeHead(status: number, statusMessage: string, headers: HeaderLines): void {
    this.#sentHeaders = headers;
    this.#response.sendDate = false;
    // Another hop may see a different end of the request (RFC 9112 section 6.3), for example with
    // chunks in HTTP/1.0 (6.1).
    if (this.framingProblem !== undefined || (this.isChunked && this.#request.httpVersionMinor === 0))
      this.#response.shouldKeepAlive = false;
    this.#response.writeHead(status, statusMessage, flatHeaders(headers));
  }

  finish(trailers: HeaderList): void {
    if (this.#response.writableEnded) return;
    if (trailers.length > 0) this.#response.addTrailers(trailers as [string, string][]);
    this.#response.end();
  }

  discardBody(lingerMs: number): void {
    const { socket } = this.#request;
    if (socket.destroyed) return;
    this.#request.unpipe();
    this.#request.resume();
    const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
    this.#request.once("close", () => clearTimeout(timer));
  }

  truncate(): void {
    const { socket } = this.#response;
    // A length or chunks show the client what is missing, so it may keep the bytes so far. Otherwise only
    // a reset shows it.
    const sent = headerListOf(flatHeaders(this.#sentHeaders));
    const isSelfDelimiting = this.#response.chunkedEncoding || hasHeader(sent, "content-length");
    if (isSelfDelimiting && socket !== null) socket.destroySoon();
    else if (socket !== null && "resetAndDestroy" in socket) socket.resetAndDestroy();
  }

  abort(): void {
    this.#response.destroy();
  }

  closeConnectionAfter(): void {
    this.#response.shouldKeepAlive = false;
    // The head has promised keep-alive. Close after the answer anyway.
    const { socket } = this.#request;
    if (this.#response.headersSent) this.#response.once("close", () => socket.destroySoon());
  }
}
