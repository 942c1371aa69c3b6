import {
  type ClientHttp2Stream,
  type ClientSessionRequestOptions,
  constants,
  type OutgoingHttpHeaders,
} from "node:http2";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import { type HeaderLine, headerListOf } from "@sluice/client/internal/http/header-list";
import { cancelStream, forgetTimer } from "@sluice/client/internal/net/abort-socket";
import { internalFailure, UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { contain, containAsync, containEvents } from "@sluice/client/internal/observability/faults";
import { trailersToForward } from "../forwarded-headers.ts";
import { requestEdit } from "../hop-by-hop.ts";
import { http2Headers, receivedFields } from "../http2-headers.ts";
import { EXPECT, isRepeatable } from "./exchange-headers.ts";
import { UNREAD_BODY_LINGER_MS } from "./forward-options.ts";
import { Http2RequestBody } from "./http2-request-body.ts";
import { type Http2ResponseOptions, respondOverHttp2, sendInterimOf } from "./http2-response.ts";
import type { Http2Upstream } from "./http2-upstream.ts";
import type { Http2UpstreamConnection } from "./http2-upstream-connection.ts";
import { watchBody } from "./silent-body.ts";

interface ForwardOverHttp2Options extends Http2ResponseOptions {
  readonly http2: Http2Upstream;
  readonly path: string;
  /** The client's address, whose share of cancels the request counts against. */
  readonly client: string;
  /**
   * A final edit of the request's headers, after hop-by-hop ones are removed. `host` becomes
   * `:authority`.
   */
  editHeaders(edit: HeaderEdit): HeaderEdit;
  readonly responseHeaderTimeoutMs: number | undefined;
  /** Writes an error answer. Nothing has been sent to the client before. */
  respondError(error: UpstreamError): void;
  /** The next upstream for a request whose dial failed; undefined if there is none left. */
  nextHttp2(): Http2Upstream | undefined;
}

/**
 * How often a request that a backend did not process is resent (RFC 9113 section 8.7). Past it:
 * 502.
 */
const MAX_RESENDS = 3;

/**
 * Forwards one exchange to an HTTP/2 upstream with what gRPC needs: both bodies stream at once, and
 * trailers arrive.
 */
export class Http2Exchange {
  readonly #downstream: HttpDownstream;
  readonly #options: ForwardOverHttp2Options;
  readonly #body: Http2RequestBody | undefined;
  #upstream: Http2Upstream;
  #stream: ClientHttp2Stream | undefined;
  #bodyWatch: ReturnType<typeof watchBody>;
  #resends = 0;
  /** The client has its whole answer, or has left. */
  #isOver = false;
  #isAnswered = false;

  /** Calls `onEnd` once, when the exchange is over, whatever its outcome. */
  constructor(downstream: HttpDownstream, options: ForwardOverHttp2Options, onEnd: () => void) {
    this.#downstream = downstream;
    this.#options = options;
    this.#upstream = options.http2;
    if (downstream.hasBody) this.#body = new Http2RequestBody(downstream);
    downstream.onClose(() => {
      if (!this.#isOver) this.#leave();
      onEnd();
    });
  }

  start(): void {
    if (this.#isOver) return;
    this.#downstream.contain("exchange", (error) => this.#onFault(error));
    const { framingProblem } = this.#downstream;
    if (framingProblem !== undefined)
      return void this.#fail(new UpstreamError("invalid-request", framingProblem));
    this.#attempt();
  }

  #attempt(): void {
    const onFault = (error: unknown): void => this.#onFault(error);
    const free = this.#upstream.freeConnection(this.#options.client);
    if (free !== undefined) contain("exchange", () => this.#exchange(free), onFault);
    else containAsync("exchange", this.#dial(), onFault);
  }

  async #dial(): Promise<void> {
    let connection: Http2UpstreamConnection;
    try {
      connection = await this.#upstream.connection(this.#options.client);
    } catch (error) {
      if (this.#isOver) return;
      const failure = error instanceof UpstreamError ? error : closedBefore("the connection closed", error);
      const next = failure.code === "dial-failed" ? this.#options.nextHttp2() : undefined;
      if (next === undefined) return void this.#fail(failure);
      this.#upstream = next;
      return await this.#dial();
    }
    if (this.#isOver) connection.leave();
    else this.#exchange(connection);
  }

  #exchange(connection: Http2UpstreamConnection): void {
    const downstream = this.#downstream;
    const options = this.#options;
    let headers: OutgoingHttpHeaders;
    try {
      const edit = requestEdit(downstream.headers);
      edit.drop(EXPECT);
      headers = requestHeaders(options.editHeaders(edit), downstream.method, options.path);
    } catch (error) {
      connection.leave();
      return void this.#fail(closedBefore("the request cannot be forwarded", error));
    }
    let stream: ClientHttp2Stream;
    try {
      stream = connection.request(headers, requestOptions(downstream));
    } catch (error) {
      return void this.#fail(closedBefore("the connection closed", error));
    }
    this.#stream = stream;
    let trailers: HeaderLine[] = [];
    let failure: UpstreamError | undefined;
    let isWhole = false;
    const cutFor = (error: UpstreamError): void => {
      failure = error;
      cancelStream(stream);
    };
    const timer = headerTimer(options.responseHeaderTimeoutMs, cutFor);
    const end = watchEnd(stream);
    containEvents(stream, "exchange", (error) => {
      if (isWhole) cancelStream(stream);
      else this.#onFault(error);
    });
    stream.on("headers", (_headers, _flags, rawHeaders?: string[]) =>
      sendInterimOf(downstream, rawHeaders ?? []),
    );
    stream.on("response", (headers, flags, rawHeaders?: string[]) => {
      clearTimeout(timer);
      this.#body?.forget();
      end.declare(headers["content-length"]);
      const isHeadOnly = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
      const received = { headers, rawHeaders: rawHeaders ?? [], isWhole: isHeadOnly };
      const refusal = respondOverHttp2(downstream, stream, received, options);
      if (refusal !== undefined) cutFor(refusal);
    });
    stream.on("trailers", (_headers, _flags, rawTrailers?: string[]) => {
      trailers = trailersToForward(headerListOf(receivedFields(rawTrailers ?? [])));
    });
    // `rstCode` has the reason, and 'close' follows.
    stream.on("error", () => {});
    stream.on("end", () => {
      // Costs a tenth here of what it costs in 'close'.
      forgetTimer(stream);
      isWhole = end.isWhole() && downstream.hasResponded;
      if (!isWhole || this.#isOver) return;
      downstream.finish(trailers);
      if (downstream.isBodyComplete) return;
      // The backend has part of the request and must not take it for the whole.
      this.#body?.stop();
      cancelStream(stream);
      downstream.discardBody(UNREAD_BODY_LINGER_MS);
    });
    stream.on("close", () => {
      clearTimeout(timer);
      if (!stream.readableEnded) forgetTimer(stream);
      this.#bodyWatch?.stop();
      if (isWhole || this.#isOver || this.#isAnswered || downstream.isFinished) return;
      if (downstream.hasResponded) this.#cutShort();
      else if (failure === undefined && this.#mayResend(stream, connection)) this.#resend();
      else this.#fail(failure ?? closedBefore("the stream was reset"));
    });
    if (this.#body === undefined) return;
    this.#body.sendOn(stream);
    this.#bodyWatch = this.#body.watch = watchBody(downstream, options, cutFor);
  }

  /**
   * Resends on REFUSED_STREAM, into which node:http2 also turns a GOAWAY (RFC 9113 section 8.7), and
   * after a broken connection (RFC 9110 section 9.2.2).
   */
  #mayResend({ rstCode }: ClientHttp2Stream, connection: Http2UpstreamConnection): boolean {
    if (rstCode !== constants.NGHTTP2_REFUSED_STREAM)
      return this.#resends === 0 && connection.isRetired && isRepeatable(this.#downstream);
    if (this.#resends >= MAX_RESENDS) return false;
    return this.#body === undefined || this.#body.isRepeatable;
  }

  #resend(): void {
    this.#resends += 1;
    this.#body?.hold();
    this.#attempt();
  }

  #cutShort(): void {
    this.#isAnswered = true;
    this.#body?.stop();
    this.#downstream.truncate();
  }

  #fail(error: UpstreamError): void {
    if (this.#isAnswered) return;
    // Keeps 'close' from answering again.
    this.#isAnswered = true;
    this.#body?.stop();
    if (!this.#downstream.isBodyComplete) this.#downstream.discardBody(UNREAD_BODY_LINGER_MS);
    if (this.#downstream.hasResponded) this.#downstream.abort();
    else this.#options.respondError(error);
  }

  #onFault(error: unknown): void {
    if (this.#stream !== undefined) cancelStream(this.#stream);
    if (this.#isAnswered) this.#downstream.abort();
    else this.#fail(internalFailure(error));
  }

  /** The client has its whole answer, or has left. */
  #leave(): void {
    this.#isOver = true;
    this.#bodyWatch?.stop();
    this.#body?.stop();
    const stream = this.#stream;
    if (stream === undefined || stream.closed) return;
    if (!this.#downstream.isFinished) this.#upstream.cancelled(this.#options.client);
    cancelStream(stream);
  }
}

function closedBefore(text: string, cause?: unknown): UpstreamError {
  return new UpstreamError("closed-before-response", text, { cause });
}

interface ResponseEnd {
  /** Passes the response's Content-Length, if it has one. */
  declare(contentLength: string | undefined): void;
  isWhole(): boolean;
}

/**
 * After a complete request, node:http2 treats a reset with NO_ERROR like END_STREAM, although RFC 9113
 * section 8.1 allows that reset only after END_STREAM. A body of its declared length is complete
 * anyway; Node's servers end that way.
 */
function watchEnd(stream: ClientHttp2Stream): ResponseEnd {
  let hasEnded = false;
  let bytesLeft = Number.NaN;
  const { push } = stream;
  const watched = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk !== null) bytesLeft -= (chunk as Buffer).length;
    else if (!stream.closed) hasEnded = true;
    return push.call(stream, chunk, encoding);
  };
  // As a plain property V8 keeps closed streams until it marks the whole heap.
  Object.defineProperty(stream, "push", { value: watched });
  return {
    declare: (contentLength) => {
      bytesLeft = Number(contentLength);
    },
    isWhole: () => hasEnded || bytesLeft === 0,
  };
}

function requestHeaders(edit: HeaderEdit, method: string, path: string): OutgoingHttpHeaders {
  const headers = http2Headers(edit, ":authority");
  headers[":method"] = method;
  headers[":path"] = path;
  headers[":scheme"] = "http";
  headers[":authority"] ??= "";
  return headers;
}

/** None for a gRPC call: Node.js 20 copies given options, which costs a kilobyte per request. */
function requestOptions({ method, hasBody }: HttpDownstream): ClientSessionRequestOptions | undefined {
  return method === "POST" && hasBody ? undefined : { endStream: !hasBody };
}

function headerTimer(
  timeoutMs: number | undefined,
  onTimeout: (error: UpstreamError) => void,
): NodeJS.Timeout | undefined {
  if (timeoutMs === undefined) return undefined;
  return setTimeout(
    () => onTimeout(new UpstreamError("response-timeout", "net/http: timeout awaiting response headers")),
    timeoutMs,
  );
}
