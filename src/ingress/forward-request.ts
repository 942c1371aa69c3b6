import type { Socket } from "node:net";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import { addTrace } from "@sluice/client/internal/http/trace-headers";
import type { HttpUpstream } from "@sluice/client/internal/http/upstream/http-upstream";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { containAsync } from "@sluice/client/internal/observability/faults";
import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { type ForwardExchangeOptions, UNREAD_BODY_LINGER_MS } from "../http/upstream/forward-options.ts";
import { HttpExchange } from "../http/upstream/http-forwarder.ts";
import { Http2Exchange } from "../http/upstream/http2-forwarder.ts";
import type { Http2Upstream } from "../http/upstream/http2-upstream.ts";
import {
  addOwnLines,
  type ChosenUpstream,
  chooseBackend,
  type IngressAnswer,
  ingressAnswer,
  reasonPhrase,
  upstreamRefusal,
} from "./choose-backend.ts";
import type { EndpointUpstream } from "./endpoint-upstream.ts";
import type { ExchangeEnd, IngressContext } from "./ingress-context.ts";
import {
  addForwardedHeaders,
  type IngressRequest,
  originOf,
  type RequestOrigin,
  readIngressRequest,
  sourceOf,
  traceExchange,
} from "./ingress-request.ts";
import type { RouteBackend } from "./route.ts";
import { H2C_APP_PROTOCOL } from "./route-problems.ts";

/** A plain request and its connection. */
interface IncomingExchange {
  readonly downstream: HttpDownstream & { target: string };
  readonly socket: Socket;
  readonly protocol: "http/1.1" | "h2";
  readonly expectsContinue: boolean;
  /** HTTP/1.0 requires no Host, and load balancers' health checks often send none. */
  readonly mayOmitHost: boolean;
}

/** Handles one plain request until the end of its response. Never throws. */
export function forwardRequest(exchange: IncomingExchange, context: IngressContext): void {
  const startedMs = performance.now();
  const { downstream, socket, mayOmitHost } = exchange;
  const { method, target, headers } = downstream;
  const request = readIngressRequest(method, target, headers, context.limits.maxRequestHeaders, mayOmitHost);
  if ("refusal" in request) {
    answer(exchange, ingressAnswer(request.refusal, headers), undefined, context);
    return;
  }
  const chosen = chooseBackend(request, headers, originOf(socket, context.edge), context);
  if (chosen.type === "answer") answer(exchange, chosen.answer, chosen.route, context);
  else if (chosen.type === "upstream")
    new IngressForwarding(exchange, request, chosen, startedMs, context).start();
  else {
    if (context.accessLog !== undefined) {
      const facts = factsOf(exchange, chosen.route, startedMs, context, undefined);
      downstream.onClose(() => logExchange(facts, downstream.hasResponded ? downstream.status : 0, context));
    }
    if (exchange.expectsContinue) downstream.sendContinue();
    // This gateway's own API leg reads the target that it would get from an API server's client.
    downstream.target = chosen.target;
    void chosen.gateway.listener.answerRequest(downstream, socket);
  }
}

/** One request on its way to an endpoint: its seat, options and counters. */
class IngressForwarding implements ForwardExchangeOptions {
  readonly upstream: HttpUpstream;
  readonly path: string;
  readonly expectsContinue: boolean;
  readonly rejectRedirects: boolean;
  readonly responseHeaderTimeoutMs: number;
  readonly bodySilenceTimeoutMs: number;
  readonly streamIdleTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly #exchange: IncomingExchange;
  readonly #origin: RequestOrigin;
  /** The address that the request's seat counts against. */
  readonly #address: string;
  readonly #request: IngressRequest;
  readonly #chosen: ChosenUpstream;
  readonly #startedMs: number;
  readonly #context: IngressContext;
  #trace: RequestTrace | undefined;
  #isSeated = false;
  #endpoint: EndpointUpstream;
  #code = 0;

  constructor(
    exchange: IncomingExchange,
    request: IngressRequest,
    chosen: ChosenUpstream,
    startedMs: number,
    context: IngressContext,
  ) {
    const { idleMs, streamIdleMs } = context.timeouts;
    this.upstream = chosen.upstream.http1;
    this.path = chosen.target;
    this.expectsContinue = exchange.expectsContinue;
    this.rejectRedirects = chosen.rejectRedirects;
    this.responseHeaderTimeoutMs = chosen.responseTimeoutMs ?? idleMs;
    this.bodySilenceTimeoutMs = chosen.bodyTimeoutMs ?? streamIdleMs;
    this.streamIdleTimeoutMs = streamIdleMs;
    this.idleTimeoutMs = idleMs;
    this.#exchange = exchange;
    this.#origin = originOf(exchange.socket, context.edge);
    this.#address = sourceOf(this.#origin, exchange.downstream.headers, context);
    this.#request = request;
    this.#chosen = chosen;
    this.#startedMs = startedMs;
    this.#context = context;
    this.#endpoint = chosen.upstream;
  }

  /** Forwards the request as soon as its address has a seat. */
  start(): void {
    const { requests, seats } = this.#context;
    const { downstream } = this.#exchange;
    requests.begin(downstream);
    const seated = seats.acquire(this.#address, "", (leaves) => downstream.onClose(leaves));
    if (seated === true) this.#forward();
    else if (seated === false) this.#refuse();
    else {
      let hasLeft = false;
      downstream.onClose(() => {
        hasLeft = true;
      });
      const waited = seated.then((isSeated) => {
        if (hasLeft) {
          requests.end(downstream);
          if (isSeated) seats.release(this.#address);
        } else if (isSeated) this.#forward();
        else this.#refuse();
      });
      containAsync("exchange", waited, () => downstream.abort());
    }
  }

  #refuse(): void {
    const { downstream } = this.#exchange;
    this.#context.requests.end(downstream);
    const refusal = ingressAnswer(WIRE_ERRORS["too-many-requests"].ingress(), downstream.headers);
    answer(this.#exchange, refusal, this.#chosen.route, this.#context);
  }

  #forward(): void {
    this.#isSeated = true;
    const { downstream } = this.#exchange;
    const { route, appProtocol } = this.#chosen;
    if (this.#context.tracing !== undefined)
      this.#trace = traceExchange(downstream, this.#origin, route, this.#context);
    if (downstream.hasBody)
      this.#context.slowBodies.watchSeat(this.#address, downstream, () => this.#leaveSeat());
    if (appProtocol !== H2C_APP_PROTOCOL) {
      new HttpExchange(downstream, this, this.#ended).start();
      return;
    }
    new Http2Exchange(downstream, this, this.#ended).start();
  }

  #leaveSeat(): void {
    if (this.#isSeated) this.#context.seats.release(this.#address);
    this.#isSeated = false;
  }

  editHeaders(edit: HeaderEdit): HeaderEdit {
    if (this.#trace !== undefined) addTrace(edit, this.#trace);
    addForwardedHeaders(edit, this.#request, this.#origin, this.#chosen.forwardedPrefix);
    return edit;
  }

  editResponseHeaders(edit: HeaderEdit, status: number): void {
    this.#code = status;
    addOwnLines(edit);
    const cookie = this.#chosen.cookieFor?.(this.#endpoint);
    if (cookie !== undefined) edit.add("Set-Cookie", cookie);
  }

  nextUpstream(): HttpUpstream | undefined {
    return this.#next()?.http1;
  }

  get http2(): Http2Upstream {
    return this.#endpoint.http2;
  }

  get client(): string {
    return this.#origin.remoteAddress;
  }

  nextHttp2(): Http2Upstream | undefined {
    return this.#next()?.http2;
  }

  #next(): EndpointUpstream | undefined {
    const next = this.#chosen.next();
    if (next !== undefined) this.#endpoint = next;
    return next;
  }

  respondError(error: UpstreamError): void {
    const refusal = upstreamRefusal(error);
    const { downstream } = this.#exchange;
    this.#context.problems.judgeError(this.#chosen, error);
    this.#code = refusal.code;
    const endpoint = this.#endpoint.endpoint.host;
    this.#context.logger.debug({ code: error.code, endpoint }, "an exchange failed");
    write(downstream, ingressAnswer(refusal, downstream.headers));
  }

  readonly #ended = (): void => {
    const { downstream, protocol } = this.#exchange;
    const { route } = this.#chosen;
    this.#context.requests.end(downstream);
    this.#leaveSeat();
    const seconds = (performance.now() - this.#startedMs) / 1000;
    this.#context.metrics.requestEnded(protocol, this.#code, route.names, seconds, this.#trace);
    this.#trace?.end(this.#code);
    if (this.#context.accessLog === undefined) return;
    const facts = factsOf(this.#exchange, route, this.#startedMs, this.#context, this.#trace);
    logExchange({ ...facts, endpoint: addressOf(this.#endpoint) }, this.#code, this.#context);
  };
}

function answer(
  exchange: IncomingExchange,
  given: IngressAnswer,
  route: RouteBackend | undefined,
  context: IngressContext,
): void {
  const { downstream, socket, protocol } = exchange;
  // A client that does not read the answer is looked for among them, too.
  context.requests.add(downstream);
  write(downstream, given);
  context.metrics.requestEnded(protocol, given.status, route?.names, 0);
  const trace = traceExchange(downstream, originOf(socket, context.edge), route, context);
  trace?.end(given.status);
  if (context.accessLog !== undefined)
    logExchange(factsOf(exchange, route, performance.now(), context, trace), given.status, context);
}

type ExchangeFacts = Omit<ExchangeEnd, "status" | "responseBytes"> & Pick<IncomingExchange, "downstream">;

/** Reads the target now, because the API leg replaces it. */
function factsOf(
  { downstream, socket, protocol }: IncomingExchange,
  route: RouteBackend | undefined,
  startedMs: number,
  { edge }: IngressContext,
  trace: RequestTrace | undefined,
): ExchangeFacts {
  const { isTls, remoteAddress } = originOf(socket, edge);
  const { method, target, headers } = downstream;
  return {
    isTls,
    remoteAddress,
    downstream,
    protocol,
    method,
    target,
    headers,
    route: route?.names,
    startedMs,
    trace,
  };
}

function logExchange(
  { downstream, ...facts }: ExchangeFacts,
  status: number,
  { accessLog }: IngressContext,
): void {
  accessLog?.write({ ...facts, status, responseBytes: downstream.bodyBytes });
}

export function addressOf({ endpoint }: EndpointUpstream): string {
  return joinHostPort(endpoint.host, endpoint.port);
}

function write(downstream: HttpDownstream, { status, headers, body }: IngressAnswer): void {
  const parts = downstream.method === "HEAD" || body.length === 0 ? [] : [body];
  downstream.respondWhole(status, reasonPhrase(status), headers, parts, []);
  if (!downstream.isBodyComplete) downstream.discardBody(UNREAD_BODY_LINGER_MS);
}
