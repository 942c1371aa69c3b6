import {
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
  request as sendRequest,
} from "node:http";
import { exchangeErrorOf } from "./exchange-error.ts";
import { hasBody, requestHeadersOf, responseHeadersOf } from "./exchange-headers.ts";
import { joinHostPort } from "./go-dial-error.ts";
import { flatHeaders, type HeaderList, hasHeader, headerListOf } from "./header-list.ts";
import { trailersToForward } from "./hop-by-hop.ts";
import type { HttpUpstream } from "./http-upstream.ts";
import { relayInterimResponse } from "./interim-response.ts";
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
  /** Writes the answer where there is no response to forward. Nothing has been sent to the client yet. */
  respondError(error: UpstreamError, response: ServerResponse): void;
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
  options: ForwardOptions,
): Promise<void> {
  return new Promise((resolve) => {
    response.once("close", resolve);
    if (response.destroyed || response.closed) return resolve();
    new HttpExchange(request, response, options).start();
  });
}

class HttpExchange {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #options: ForwardOptions;
  readonly #hasBody: boolean;
  #upstreamRequest: ClientRequest | undefined;
  #headerTimer: NodeJS.Timeout | undefined;
  #hasFailed = false;
  #isRetry = false;
  #isLengthSent = false;

  constructor(request: IncomingMessage, response: ServerResponse, options: ForwardOptions) {
    this.#request = request;
    this.#response = response;
    this.#options = options;
    this.#hasBody = hasBody(request);
  }

  start(): void {
    const coding = this.#request.headers["transfer-encoding"];
    if (coding !== undefined && coding.toLowerCase() !== "chunked") {
      this.#fail(new UpstreamError("invalid-request", "unsupported transfer encoding"));
      return;
    }
    this.#request.on("error", () => this.#clientGone());
    this.#response.on("error", () => this.#clientGone());
    this.#response.on("close", () => this.#clientGone());
    this.#send();
  }

  #send(): void {
    const { upstream, path } = this.#options;
    try {
      this.#upstreamRequest = sendRequest({
        agent: upstream.agent,
        host: upstream.endpoint.host,
        port: upstream.endpoint.port,
        method: this.#request.method ?? "GET",
        path: path ?? this.#request.url ?? "/",
        headers: flatHeaders(requestHeadersOf(this.#request, this.#options)),
        setHost: false,
        maxHeaderSize: MAX_FORWARDED_HEAD_BYTES,
      });
    } catch (error) {
      this.#fail(new UpstreamError("invalid-request", "the request can not be forwarded", { cause: error }));
      return;
    }
    this.#upstreamRequest
      .on("response", (upstreamResponse) => this.#respond(upstreamResponse))
      .on("continue", () => this.#continue())
      .on("information", (interim) => relayInterimResponse(interim, this.#response))
      .on("upgrade", (_response, socket) => {
        socket.destroy();
        this.#fail(new UpstreamError("invalid-status", "unexpected upgrade"));
      })
      .on("finish", () => this.#startHeaderTimer())
      .on("error", (error) => this.#upstreamFailed(error));
    if (this.#hasBody) this.#sendBody(this.#upstreamRequest);
    else this.#upstreamRequest.end();
  }

  #sendBody(upstreamRequest: ClientRequest): void {
    this.#request.pipe(upstreamRequest, { end: false });
    this.#request.on("end", () => {
      if (upstreamRequest.destroyed) return;
      upstreamRequest.addTrailers(
        trailersToForward(headerListOf(this.#request.rawTrailers)) as [string, string][],
      );
      upstreamRequest.end();
    });
  }

  #continue(): void {
    const { expectsContinue } = this.#options;
    if (expectsContinue === true && !this.#response.headersSent) this.#response.writeContinue();
  }

  #startHeaderTimer(): void {
    const { responseHeaderTimeoutMs } = this.#options;
    if (responseHeaderTimeoutMs === undefined || this.#response.headersSent) return;
    this.#headerTimer = setTimeout(() => {
      const error = new UpstreamError("response-timeout", "net/http: timeout awaiting response headers");
      this.#upstreamRequest?.destroy(error);
    }, responseHeaderTimeoutMs);
  }

  #respond(upstreamResponse: IncomingMessage): void {
    clearTimeout(this.#headerTimer);
    const response = this.#response;
    const status = upstreamResponse.statusCode ?? 0;
    if (
      this.#options.rejectRedirects === true &&
      status >= 300 &&
      status < 400 &&
      upstreamResponse.headers.location
    ) {
      this.#fail(new UpstreamError("redirect-refused", REDIRECT_REFUSED));
      return;
    }
    try {
      const headers = this.#responseHeaders(upstreamResponse);
      this.#isLengthSent = hasHeader(headers, "content-length");
      response.sendDate = false;
      response.writeHead(status, upstreamResponse.statusMessage, flatHeaders(headers));
      response.flushHeaders();
    } catch (error) {
      this.#fail(
        new UpstreamError("malformed-response", "the response can not be forwarded", { cause: error }),
      );
      return;
    }
    upstreamResponse.on("error", () => this.#truncated());
    upstreamResponse.on("end", () => this.#finish(upstreamResponse));
    upstreamResponse.pipe(response, { end: false });
  }

  #responseHeaders(upstreamResponse: IncomingMessage): HeaderList {
    const received = responseHeadersOf(upstreamResponse, this.#request);
    const edited =
      this.#options.editResponseHeaders?.(received, upstreamResponse.statusCode ?? 0) ?? received;
    // The client holds a body back that nobody asked for: its connection can not be used again.
    const holdsBody = this.#options.expectsContinue === true && this.#hasBody && !this.#request.complete;
    return holdsBody ? [...edited, ["Connection", "close"]] : edited;
  }

  #finish(upstreamResponse: IncomingMessage): void {
    if (!upstreamResponse.complete) {
      this.#truncated();
      return;
    }
    const response = this.#response;
    response.addTrailers(trailersToForward(headerListOf(upstreamResponse.rawTrailers)) as [string, string][]);
    response.end();
    if (!this.#request.complete) this.#discardRest();
  }

  /** Answered before the body was there: the upstream gets no more of it, the client is let finish for a while. */
  #discardRest(): void {
    const { socket } = this.#request;
    this.#request.unpipe();
    this.#request.resume();
    this.#hasFailed = true;
    this.#upstreamRequest?.destroy();
    const timer = setTimeout(() => socket.destroy(), UNREAD_BODY_LINGER_MS).unref();
    this.#request.once("close", () => clearTimeout(timer));
  }

  #truncated(): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    const { socket } = this.#response;
    // A length or chunks tell the client what is missing, so it may have what came; otherwise only a reset can tell.
    const isSelfDelimiting = this.#isLengthSent || this.#response.chunkedEncoding;
    if (isSelfDelimiting && socket !== null) socket.destroySoon();
    else if (socket !== null && "resetAndDestroy" in socket) socket.resetAndDestroy();
    this.#upstreamRequest?.destroy();
  }

  #upstreamFailed(error: Error): void {
    const { endpoint } = this.#options.upstream;
    clearTimeout(this.#headerTimer);
    // Once there is a response its own events tell whether it is whole: an upload may break behind a complete answer.
    if (this.#hasFailed || this.#response.headersSent) return;
    if (this.#mayRetry(error)) {
      this.#isRetry = true;
      this.#send();
      return;
    }
    this.#fail(exchangeErrorOf(error, joinHostPort(endpoint.host, endpoint.port)));
  }

  /** An idle connection that the upstream closed as we took it; the request has not been heard. RFC 9110 section 9.2.2. */
  #mayRetry(error: Error): boolean {
    const isStale = this.#upstreamRequest?.reusedSocket === true && !(error instanceof UpstreamError);
    return (
      isStale &&
      !this.#isRetry &&
      !this.#hasBody &&
      BODILESS_AND_REPEATABLE.includes(this.#request.method ?? "")
    );
  }

  #fail(error: UpstreamError): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    clearTimeout(this.#headerTimer);
    this.#upstreamRequest?.destroy();
    if (!this.#request.complete) this.#discardRest();
    if (this.#response.headersSent) this.#response.destroy();
    else this.#options.respondError(error, this.#response);
  }

  #clientGone(): void {
    clearTimeout(this.#headerTimer);
    if (this.#response.writableFinished) return;
    this.#hasFailed = true;
    this.#upstreamRequest?.destroy();
  }
}

const REDIRECT_REFUSED = "the backend attempted to redirect this request, which is not permitted";
