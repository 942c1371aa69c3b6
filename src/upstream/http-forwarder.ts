import {
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
  request as sendRequest,
} from "node:http";
import { exchangeErrorOf } from "./exchange-error.ts";
import { requestHeadersOf, responseHeadersOf } from "./exchange-headers.ts";
import { joinHostPort } from "./go-dial-error.ts";
import { flatHeaders, type HeaderList, headerListOf } from "./header-list.ts";
import { trailersToForward, withoutHopByHop } from "./hop-by-hop.ts";
import type { HttpDownstream } from "./http-downstream.ts";
import type { HttpUpstream } from "./http-upstream.ts";
import { Http1Downstream } from "./http1-downstream.ts";
import { watchForSilence } from "./silent-body.ts";
import { UpstreamError } from "./upstream-error.ts";

export interface ForwardOptions {
  readonly upstream: HttpUpstream;
  /** Path with query for the upstream; absent: the request's own. */
  readonly path?: string | undefined;
  /** Last edit of the request's lines, hop-by-hop lines already gone: Host, X-Forwarded-*, identity. */
  readonly editHeaders?: ((headers: HeaderList) => HeaderList) | undefined;
  /** The same for the response's. */
  readonly editResponseHeaders?: ((headers: HeaderList, status: number) => HeaderList) | undefined;
  /** True on a server's 'checkContinue' event: the upstream decides on `100 Continue`. Elsewhere Node has sent it. */
  readonly expectsContinue?: boolean | undefined;
  /** Answer 3xx with Location by an error instead (Kubernetes' RejectForwardingRedirects). */
  readonly rejectRedirects?: boolean | undefined;
  /** From the request being sent, body included, to the response's head. Absent: no limit, as a watch may need. */
  readonly responseHeaderTimeoutMs?: number | undefined;
  /** So long may a client keep a body of declared length to itself before there is an answer. Absent: no limit. */
  readonly bodySilenceTimeoutMs?: number | undefined;
}

export interface ForwardHttpOptions extends ForwardOptions {
  /** Writes the answer where there is no response to forward. Nothing has been sent to the client yet. */
  respondError(error: UpstreamError, response: ServerResponse): void;
}

export interface ForwardExchangeOptions extends ForwardOptions {
  /** As `respondError` of ForwardHttpOptions. */
  respondError(error: UpstreamError): void;
  /** Another upstream for a request that could not even be dialled; undefined when there is none left. */
  nextUpstream?(failed: HttpUpstream): HttpUpstream | undefined;
}

/** Heads of plain responses; Node's own limit of 16 KiB is less than some applications' cookies. */
export const MAX_FORWARDED_HEAD_BYTES = 64 * 1024;

/** A client that goes on sending a body after its answer is disconnected after this long. */
export const UNREAD_BODY_LINGER_MS = 5_000;

const BODILESS_AND_REPEATABLE = ["GET", "HEAD", "OPTIONS", "TRACE"];

/**
 * Forwards one HTTP/1.x exchange, streaming both ways: header lines in their order, case and number, trailers, interim
 * responses, back-pressure. Whoever leaves early takes the other side along; a response that the upstream cuts short
 * never ends cleanly. Resolves when the exchange is over, whatever its outcome; never rejects.
 */
export function forwardHttp(
  request: IncomingMessage,
  response: ServerResponse,
  options: ForwardHttpOptions,
): Promise<void> {
  return forwardExchange(new Http1Downstream(request, response), {
    ...options,
    respondError: (error) => options.respondError(error, response),
  });
}

/** The same for a client of any version of HTTP. */
export function forwardExchange(downstream: HttpDownstream, options: ForwardExchangeOptions): Promise<void> {
  return new Promise((resolve) => {
    const exchange = new HttpExchange(downstream, options);
    let isOver = false;
    downstream.onClose(() => {
      isOver = true;
      exchange.clientGone();
      resolve();
    });
    if (!isOver) exchange.start();
  });
}

class HttpExchange {
  readonly #downstream: HttpDownstream;
  readonly #options: ForwardExchangeOptions;
  #upstream: HttpUpstream;
  #upstreamRequest: ClientRequest | undefined;
  #headerTimer: NodeJS.Timeout | undefined;
  #unwatchBody = (): void => {};
  #hasFailed = false;
  #isRetry = false;
  #isBodyTaken = false;

  constructor(downstream: HttpDownstream, options: ForwardExchangeOptions) {
    this.#downstream = downstream;
    this.#options = options;
    this.#upstream = options.upstream;
  }

  start(): void {
    const { framingProblem } = this.#downstream;
    if (framingProblem !== undefined) this.#fail(new UpstreamError("invalid-request", framingProblem));
    else this.#send();
  }

  #send(): void {
    const upstream = this.#upstream;
    const downstream = this.#downstream;
    const { editHeaders, expectsContinue, path } = this.#options;
    let upstreamRequest: ClientRequest;
    try {
      upstreamRequest = sendRequest({
        agent: upstream.agent,
        host: upstream.endpoint.host,
        port: upstream.endpoint.port,
        method: downstream.method,
        path: path ?? downstream.target,
        headers: flatHeaders(requestHeadersOf(downstream, { editHeaders, expectsContinue, upstream })),
        setHost: false,
        maxHeaderSize: MAX_FORWARDED_HEAD_BYTES,
      });
    } catch (error) {
      this.#fail(new UpstreamError("invalid-request", "the request can not be forwarded", { cause: error }));
      return;
    }
    this.#upstreamRequest = upstreamRequest;
    upstreamRequest
      .on("response", (upstreamResponse) => this.#respond(upstreamResponse))
      .on("continue", () => this.#continue())
      .on("information", ({ statusCode, statusMessage, rawHeaders }) => {
        // 100 belongs to `Expect`, which each hop handles by itself.
        if (statusCode === 100 || downstream.hasResponded) return;
        downstream.sendInterim(statusCode, statusMessage, withoutHopByHop(headerListOf(rawHeaders)));
      })
      .on("upgrade", (_response, socket) => {
        socket.destroy();
        this.#fail(new UpstreamError("invalid-status", "unexpected upgrade"));
      })
      .on("finish", () => this.#startHeaderTimer())
      .on("error", (error) => this.#upstreamFailed(error));
    if (!downstream.hasBody) upstreamRequest.end();
    // Not before there is a connection: a body that has been read can not be sent to another upstream.
    else upstreamRequest.once("socket", () => this.#sendBody(upstreamRequest));
  }

  #sendBody(upstreamRequest: ClientRequest): void {
    const downstream = this.#downstream;
    if (this.#hasFailed) return;
    this.#isBodyTaken = true;
    downstream.body.pipe(upstreamRequest, { end: false });
    downstream.body.on("end", () => {
      if (upstreamRequest.destroyed) return;
      upstreamRequest.addTrailers(trailersToForward(downstream.trailers) as [string, string][]);
      upstreamRequest.end();
    });
    if (this.#options.expectsContinue !== true) this.#watchBody();
  }

  /** A body without a declared length may be one half of a conversation, where silence is no fault. */
  #watchBody(): void {
    const downstream = this.#downstream;
    const { bodySilenceTimeoutMs } = this.#options;
    if (bodySilenceTimeoutMs === undefined || downstream.isChunked || downstream.isBodyComplete) return;
    this.#unwatchBody = watchForSilence(downstream.body, bodySilenceTimeoutMs, () => {
      if (downstream.hasResponded) return;
      this.#fail(new UpstreamError("request-timeout", "the request's body did not come"));
    });
  }

  #continue(): void {
    if (this.#options.expectsContinue === true && !this.#downstream.hasResponded) {
      this.#downstream.sendContinue();
      this.#watchBody();
    }
  }

  #startHeaderTimer(): void {
    const { responseHeaderTimeoutMs } = this.#options;
    if (responseHeaderTimeoutMs === undefined || this.#downstream.hasResponded) return;
    this.#headerTimer = setTimeout(() => {
      const error = new UpstreamError("response-timeout", "net/http: timeout awaiting response headers");
      this.#upstreamRequest?.destroy(error);
    }, responseHeaderTimeoutMs);
  }

  #respond(upstreamResponse: IncomingMessage): void {
    clearTimeout(this.#headerTimer);
    const status = upstreamResponse.statusCode ?? 0;
    const isRedirect = status >= 300 && status < 400 && upstreamResponse.headers.location !== undefined;
    if (this.#options.rejectRedirects === true && isRedirect) {
      this.#fail(new UpstreamError("redirect-refused", REDIRECT_REFUSED));
      return;
    }
    try {
      const headers = this.#responseHeaders(upstreamResponse);
      const sink = this.#downstream.respond(status, upstreamResponse.statusMessage ?? "", headers);
      upstreamResponse.on("error", () => this.#truncated());
      upstreamResponse.on("end", () => this.#finish(upstreamResponse));
      upstreamResponse.pipe(sink, { end: false });
    } catch (error) {
      this.#fail(
        new UpstreamError("malformed-response", "the response can not be forwarded", { cause: error }),
      );
    }
  }

  #responseHeaders(upstreamResponse: IncomingMessage): HeaderList {
    const downstream = this.#downstream;
    const received = responseHeadersOf(upstreamResponse, downstream);
    const edited =
      this.#options.editResponseHeaders?.(received, upstreamResponse.statusCode ?? 0) ?? received;
    // The client holds a body back that nobody asked for: its connection can not be used again.
    const holdsBody =
      this.#options.expectsContinue === true && downstream.hasBody && !downstream.isBodyComplete;
    return holdsBody ? [...edited, ["Connection", "close"]] : edited;
  }

  #finish(upstreamResponse: IncomingMessage): void {
    if (!upstreamResponse.complete) {
      this.#truncated();
      return;
    }
    this.#downstream.finish(trailersToForward(headerListOf(upstreamResponse.rawTrailers)));
    if (!this.#downstream.isBodyComplete) this.#discardRest();
  }

  /** Answered before the body was there: the upstream gets no more of it, the client is let finish for a while. */
  #discardRest(): void {
    this.#hasFailed = true;
    this.#downstream.discardBody(UNREAD_BODY_LINGER_MS);
    this.#upstreamRequest?.destroy();
  }

  #truncated(): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#downstream.truncate();
    this.#upstreamRequest?.destroy();
  }

  #upstreamFailed(error: Error): void {
    const { endpoint } = this.#upstream;
    clearTimeout(this.#headerTimer);
    // Once there is a response its own events tell whether it is whole: an upload may break behind a complete answer.
    if (this.#hasFailed || this.#downstream.hasResponded) return;
    if (this.#mayRetry(error)) {
      this.#isRetry = true;
      this.#send();
      return;
    }
    const failure = exchangeErrorOf(error, joinHostPort(endpoint.host, endpoint.port));
    const next = this.#upstreamAfter(failure);
    if (next === undefined) {
      this.#fail(failure);
    } else {
      this.#upstream = next;
      this.#send();
    }
  }

  /** Only a request that nobody has heard goes elsewhere: nothing may happen twice. */
  #upstreamAfter({ code }: UpstreamError): HttpUpstream | undefined {
    if (code !== "dial-failed" || this.#isBodyTaken) return undefined;
    return this.#options.nextUpstream?.(this.#upstream);
  }

  /** An idle connection that the upstream closed as we took it; the request has not been heard. RFC 9110 section 9.2.2. */
  #mayRetry(error: Error): boolean {
    const isStale = this.#upstreamRequest?.reusedSocket === true && !(error instanceof UpstreamError);
    const { method, hasBody } = this.#downstream;
    return isStale && !this.#isRetry && !hasBody && BODILESS_AND_REPEATABLE.includes(method);
  }

  #fail(error: UpstreamError): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    clearTimeout(this.#headerTimer);
    this.#unwatchBody();
    this.#upstreamRequest?.destroy();
    if (!this.#downstream.isBodyComplete) this.#downstream.discardBody(UNREAD_BODY_LINGER_MS);
    if (this.#downstream.hasResponded) this.#downstream.abort();
    else this.#options.respondError(error);
  }

  clientGone(): void {
    clearTimeout(this.#headerTimer);
    this.#unwatchBody();
    if (this.#downstream.isFinished) return;
    this.#hasFailed = true;
    this.#upstreamRequest?.destroy();
  }
}

const REDIRECT_REFUSED = "the backend attempted to redirect this request, which is not permitted";
