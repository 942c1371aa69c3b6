// src/http: HTTP to upstreams and to clients: exchanges, forwarding, pools, proxies on the way,
// header hygiene
import type { Writable } from "node:stream";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { headRefusal } from "@sluice/client/internal/http/head-refusal";
import { headerListOf } from "@sluice/client/internal/http/header-list";
import { exchangeErrorOf } from "@sluice/client/internal/http/upstream/exchange-error";
import type { HttpUpstream } from "@sluice/client/internal/http/upstream/http-upstream";
import type {
  Http1Exchange,
  Http1UpstreamConnection,
} from "@sluice/client/internal/http/upstream/http1-upstream-connection";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import { internalFailure, UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { contain, containAsync, settleFault } from "@sluice/client/internal/observability/faults";
import type { FieldLines, ResponseHead } from "@sluice/protocols/http1";
import { trailersToForward } from "../forwarded-headers.ts";
import { requestEdit } from "../hop-by-hop.ts";
import { isRepeatable, requestHeadOf, responseHeadersOf } from "./exchange-headers.ts";
import { type ForwardExchangeOptions, responseSilenceMs, UNREAD_BODY_LINGER_MS } from "./forward-options.ts";
import { overdueError, watchBody } from "./silent-body.ts";
import { UpstreamRequestBody } from "./upstream-request-body.ts";

/**
 * Forwards one exchange to an HTTP/1.1 upstream, with back-pressure, unchanged header lines, trailers
 * and interim responses. If one side leaves, closes the other. Resolves at the end; never rejects.
 */
export function forwardExchange(downstream: HttpDownstream, options: ForwardExchangeOptions): Promise<void> {
  return new Promise((resolve) => new HttpExchange(downstream, options, resolve).start());
}

/** The same without a promise, for many exchanges. */
export class HttpExchange implements Http1Exchange {
  readonly #downstream: HttpDownstream;
  readonly #options: ForwardExchangeOptions;
  readonly #onEnd: () => void;
  #timer: NodeJS.Timeout | undefined;
  #upstream: HttpUpstream;
  #connection: Http1UpstreamConnection | undefined;
  #isReusedConnection = false;
  #body: UpstreamRequestBody | undefined;
  #bodyWatch: ReturnType<typeof watchBody>;
  /** The response head that the current read completed. */
  #head: ResponseHead | undefined;
  #sink: Writable | undefined;
  #isWaitingForDrain = false;
  #isRequestSent = false;
  #hasFailed = false;
  #isRetry = false;

  constructor(downstream: HttpDownstream, options: ForwardExchangeOptions, onEnd: () => void) {
    this.#downstream = downstream;
    this.#options = options;
    this.#onEnd = onEnd;
    this.#upstream = options.upstream;
  }

  /** Calls `onEnd` once, immediately if the client has left. */
  start(): void {
    const onFailure = (error: unknown): void => this.onFault(error);
    const { exchangeTimeoutMs } = this.#options;
    if (exchangeTimeoutMs !== undefined) {
      const overdue = (): void => contain("exchange", () => this.onTimeout(), onFailure);
      this.#timer = setTimeout(overdue, exchangeTimeoutMs).unref();
    }
    this.#downstream.onClose(this.#closed);
    if (this.#hasFailed) return;
    this.#downstream.contain("exchange", onFailure);
    try {
      this.send();
    } catch (error) {
      settleFault("exchange", error, onFailure);
    }
  }

  /** The client has its whole answer, or has left. */
  readonly #closed = (): void => {
    clearTimeout(this.#timer);
    this.#bodyWatch?.stop();
    if (!this.#downstream.isFinished) {
      this.#hasFailed = true;
      this.#leaveUpstream();
    }
    this.#onEnd();
  };

  /** Sends the request, or resends it after an attempt that had no effect. */
  send(): void {
    const { endpoint, pool } = this.#upstream;
    const downstream = this.#downstream;
    if (downstream.framingProblem !== undefined) {
      this.#fail(new UpstreamError("invalid-request", downstream.framingProblem));
      return;
    }
    let head: string;
    try {
      head = requestHeadOf(downstream, endpoint, this.#options);
    } catch (error) {
      this.#fail(new UpstreamError("invalid-request", "the request cannot be forwarded", { cause: error }));
      return;
    }
    // A second idle connection may be stale as well, so the retry dials.
    const connection = this.#isRetry ? undefined : pool.take();
    if (connection !== undefined) this.#sendOn(connection, head, true);
    else {
      const dialled = pool.dial().then(
        (another) => this.#sendOn(another, head, false),
        (error: Error) => this.#upstreamFailed(error),
      );
      containAsync("exchange", dialled, (error) => this.onFault(error));
    }
  }

  #sendOn(connection: Http1UpstreamConnection, head: string, isReused: boolean): void {
    if (this.#hasFailed) return void connection.destroy();
    this.#connection = connection;
    this.#isReusedConnection = isReused;
    connection.begin(this, this.#downstream.method);
    if (!this.#downstream.hasBody) {
      connection.write(head);
      this.#requestSent();
      return;
    }
    // A small body that arrived with its head leaves with it: the body uncorks.
    connection.cork();
    connection.write(head);
    this.#body = new UpstreamRequestBody(this.#downstream, connection, () => this.#requestSent());
    if (this.#options.expectsContinue !== true) this.#watchBody();
  }

  #requestSent(): void {
    this.#isRequestSent = true;
    const { responseHeaderTimeoutMs } = this.#options;
    if (responseHeaderTimeoutMs !== undefined && !this.#downstream.hasResponded)
      this.#connection?.expectHeadWithin(responseHeaderTimeoutMs);
  }

  #watchBody(): void {
    this.#bodyWatch = watchBody(this.#downstream, this.#options, (error) => this.#fail(error));
    if (this.#body !== undefined) this.#body.watch = this.#bodyWatch;
  }

  onInterim({ status, reason, headers }: ResponseHead): void {
    if (this.#hasFailed || this.#downstream.hasResponded) return;
    // Each hop handles `Expect`, and so 100, by itself.
    if (status !== 100) {
      this.#downstream.sendInterim(status, reason, requestEdit(headerListOf(headers)).lines());
    } else if (this.#options.expectsContinue === true) {
      this.#downstream.sendContinue();
      this.#watchBody();
    }
  }

  onHead(head: ResponseHead): void {
    const refusal = headRefusal(head, this.#options.rejectRedirects === true);
    if (refusal === undefined) this.#head = head;
    else this.#fail(refusal);
  }

  onRead(parts: readonly Buffer[], trailers: FieldLines | undefined): boolean {
    if (this.#hasFailed) return false;
    const head = this.#head;
    this.#head = undefined;
    try {
      if (head !== undefined) this.#respond(head, parts, trailers);
      else this.#continueResponse(parts, trailers);
    } catch (error) {
      this.#fail(
        new UpstreamError("malformed-response", "the response cannot be forwarded", { cause: error }),
      );
      return false;
    }
    if (trailers !== undefined) this.#finish();
    // Usually the kernel has taken everything by now.
    if (this.#downstream.hasTakenAll) return true;
    const sink = this.#sink;
    if (this.#connection !== undefined && sink?.writableNeedDrain === true) this.#waitForDrain(sink);
    return !this.#downstream.holdsMemory;
  }

  onDrain(): void {
    this.#body?.resume();
  }

  onTimeout(): void {
    this.#fail(overdueError(this.#downstream));
  }

  /** A callback of this exchange threw. A client without an answer gets one. */
  onFault(error: unknown): void {
    const hadFailed = this.#hasFailed;
    try {
      this.#fail(internalFailure(error));
    } finally {
      if (hadFailed || !this.#downstream.hasResponded) this.#downstream.abort();
    }
  }

  onBroken(error: Error, parts: readonly Buffer[]): void {
    this.#connection?.destroy();
    if (this.#hasFailed) return;
    if (this.#downstream.hasResponded) this.#truncated(parts);
    else this.#upstreamFailed(error);
  }

  #respond(head: ResponseHead, parts: readonly Buffer[], trailers: FieldLines | undefined): void {
    const { status, reason } = head;
    const headers = responseHeadersOf(status, head.headers, this.#downstream, this.#options);
    if (trailers === undefined) {
      // RFC 9112 section 7.1.2: only a chunked body has trailers.
      const mayHaveTrailers = !headers.has("content-length");
      this.#sink = this.#downstream.respond(status, reason, headers, parts, mayHaveTrailers);
      const silenceMs = responseSilenceMs(this.#options, headers);
      if (silenceMs !== undefined) this.#connection?.expectBytesWithin(silenceMs);
    } else {
      const forwarded = trailers.length === 0 ? [] : trailersToForward(headerListOf(trailers));
      this.#downstream.respondWhole(status, reason, headers, parts, forwarded);
    }
  }

  #continueResponse(parts: readonly Buffer[], trailers: FieldLines | undefined): void {
    if (parts.length > 0) this.#downstream.write(parts);
    if (trailers !== undefined) this.#downstream.finish(trailersToForward(headerListOf(trailers)));
  }

  /** Slows the upstream down to the client's speed. */
  #waitForDrain(sink: Writable): void {
    if (this.#isWaitingForDrain) return;
    this.#isWaitingForDrain = true;
    this.#connection?.pause();
    sink.once("drain", () => {
      this.#isWaitingForDrain = false;
      this.#connection?.resume();
    });
  }

  #finish(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#bodyWatch?.stop();
    if (this.#isRequestSent) {
      connection?.finish();
      return;
    }
    // The upstream answered early: it gets no more of the body, but the client may finish sending.
    this.#hasFailed = true;
    this.#body?.stop();
    connection?.destroy();
    this.#downstream.discardBody(UNREAD_BODY_LINGER_MS);
  }

  #truncated(parts: readonly Buffer[]): void {
    this.#hasFailed = true;
    this.#leaveUpstream();
    if (parts.length > 0) this.#downstream.write(parts);
    this.#downstream.truncate();
  }

  #upstreamFailed(error: Error): void {
    if (this.#hasFailed) return;
    if (this.#mayRetry()) {
      this.#isRetry = true;
      return void this.send();
    }
    const { endpoint } = this.#upstream;
    const failure = exchangeErrorOf(error, joinHostPort(endpoint.host, endpoint.port));
    const next = this.#upstreamAfter(failure);
    if (next === undefined) return void this.#fail(failure);
    this.#upstream = next;
    this.send();
  }

  /** Retries elsewhere only if no upstream has received the request, so that nothing happens twice. */
  #upstreamAfter({ code }: UpstreamError): HttpUpstream | undefined {
    if (code !== "dial-failed" || this.#body !== undefined) return undefined;
    return this.#options.nextUpstream?.(this.#upstream);
  }

  /** The upstream closed an idle connection just as we took it (RFC 9110 section 9.2.2). */
  #mayRetry(): boolean {
    const isStale = this.#isReusedConnection && this.#connection?.hasHeard === false;
    return isStale && !this.#isRetry && isRepeatable(this.#downstream);
  }

  #fail(error: UpstreamError): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#leaveUpstream();
    if (!this.#downstream.isBodyComplete) this.#downstream.discardBody(UNREAD_BODY_LINGER_MS);
    if (this.#downstream.hasResponded) this.#downstream.abort();
    else this.#options.respondError(error);
  }

  #leaveUpstream(): void {
    this.#bodyWatch?.stop();
    this.#body?.stop();
    this.#connection?.destroy();
    this.#connection = undefined;
  }
}
