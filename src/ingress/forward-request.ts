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
import { startExchange } from "../http/upstream/http-forwarder.ts";
import { forwardOverHttp2 } from "../http/upstream/http2-forwarder.ts";
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
import type { ExchangeEnd, IngressContext, LocalGateway } from "./ingress-context.ts";
import {
  addForwardedHeaders,
  type IngressRequest,
  type RequestOrigin,
  readIngressRequest,
  sourceOf,
  traceExchange,
} from "./ingress-request.ts";
import type { RouteBackend } from "./route.ts";
import { H2C_APP_PROTOCOL } from "./route-problems.ts";

interface IncomingExchange extends RequestOrigin {
  readonly downstream: HttpDownstream;
  readonly protocol: "http/1.1" | "h2";
  readonly expectsContinue: boolean;
  /** Passes the exchange to this gateway's own API leg, with the leg's target. */
  handOver(gateway: LocalGateway, target: string): void;
}

/** Handles one plain request until the end of its response. Never throws. */
export function forwardRequest(exchange: IncomingExchange, context: IngressContext): void {
  const startedMs = performance.now();
  const { downstream, mayOmitHost } = exchange;
  const { method, target, headers } = downstream;
  const request = readIngressRequest(method, target, headers, context.limits.maxRequestHeaders, mayOmitHost);
  if ("refusal" in request) {
    answer(exchange, ingressAnswer(request.refusal, headers), undefined, context);
    return;
  }
  const chosen = chooseBackend(request, headers, exchange, context);
  if (chosen.type === "answer") answer(exchange, chosen.answer, chosen.route, context);
  else if (chosen.type === "local") {
    if (context.accessLog !== undefined) {
      const facts = factsOf(exchange, chosen.route, startedMs, undefined);
      downstream.onClose(() => logExchange(facts, downstream.hasResponded ? downstream.status : 0, context));
    }
    if (exchange.expectsContinue) downstream.sendContinue();
    exchange.handOver(chosen.gateway, chosen.target);
  } else forward(exchange, request, chosen, startedMs, context);
}

function forward(
  exchange: IncomingExchange,
  request: IngressRequest,
  chosen: ChosenUpstream,
  startedMs: number,
  context: IngressContext,
): void {
  const { downstream } = exchange;
  context.requests.begin(downstream);
  const address = sourceOf(exchange, downstream.headers, context);
  const seat = { address, startedMs };
  const seated = context.seats.acquire(address);
  if (seated === true) forwardSeated(exchange, request, chosen, seat, context);
  else if (seated === false) refuse(exchange, chosen, context);
  else {
    let hasLeft = false;
    downstream.onClose(() => {
      hasLeft = true;
    });
    const waited = seated.then((isSeated) => {
      if (hasLeft) {
        context.requests.end(downstream);
        if (isSeated) context.seats.release(address);
      } else if (isSeated) forwardSeated(exchange, request, chosen, seat, context);
      else refuse(exchange, chosen, context);
    });
    containAsync("exchange", waited, () => downstream.abort());
  }
}

function refuse(exchange: IncomingExchange, { route }: ChosenUpstream, context: IngressContext): void {
  context.requests.end(exchange.downstream);
  const { headers } = exchange.downstream;
  answer(exchange, ingressAnswer(WIRE_ERRORS["too-many-requests"].ingress(), headers), route, context);
}

/**
 * An exchange's seat: the address that it counts against, and the time when the exchange arrived.
 */
interface Seat {
  readonly address: string;
  readonly startedMs: number;
}

function forwardSeated(
  exchange: IncomingExchange,
  request: IngressRequest,
  chosen: ChosenUpstream,
  seat: Seat,
  context: IngressContext,
): void {
  const forwarding = new IngressForwarding(exchange, request, chosen, seat, context);
  if (chosen.appProtocol === H2C_APP_PROTOCOL) {
    void forwardOverHttp2(exchange.downstream, {
      upstream: chosen.upstream.http2,
      path: chosen.target,
      client: exchange.remoteAddress,
      editHeaders: (edit) => forwarding.editHeaders(edit),
      editResponseHeaders: (edit, status) => forwarding.editResponseHeaders(edit, status),
      responseHeaderTimeoutMs: forwarding.responseHeaderTimeoutMs,
      bodySilenceTimeoutMs: forwarding.bodySilenceTimeoutMs,
      streamIdleTimeoutMs: forwarding.streamIdleTimeoutMs,
      idleTimeoutMs: forwarding.idleTimeoutMs,
      respondError: (error) => forwarding.respondError(error),
      nextUpstream: () => forwarding.next()?.http2,
    }).then(forwarding.ended);
  } else {
    startExchange(exchange.downstream, forwarding, forwarding.ended);
  }
}

/** One forwarded request's options and counters. */
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
  readonly #request: IngressRequest;
  readonly #chosen: ChosenUpstream;
  readonly #context: IngressContext;
  readonly #seat: Seat;
  readonly #trace: RequestTrace | undefined;
  #isSeated = true;
  #endpoint: EndpointUpstream;
  #code = 0;

  constructor(
    exchange: IncomingExchange,
    request: IngressRequest,
    chosen: ChosenUpstream,
    seat: Seat,
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
    this.#seat = seat;
    this.#endpoint = chosen.upstream;
    this.#exchange = exchange;
    this.#request = request;
    this.#chosen = chosen;
    this.#context = context;
    this.#trace = traceExchange(exchange.downstream, exchange, chosen.route, context);
    if (exchange.downstream.hasBody)
      context.slowBodies.watchSeat(seat.address, exchange.downstream, () => this.#leaveSeat());
  }

  #leaveSeat(): void {
    if (this.#isSeated) this.#context.seats.release(this.#seat.address);
    this.#isSeated = false;
  }

  editHeaders(edit: HeaderEdit): HeaderEdit {
    addTrace(edit, this.#trace);
    addForwardedHeaders(edit, this.#request, this.#exchange, this.#context, this.#chosen.forwardedPrefix);
    return edit;
  }

  editResponseHeaders(edit: HeaderEdit, status: number): void {
    this.#code = status;
    addOwnLines(edit);
    const cookie = this.#chosen.cookieFor?.(this.#endpoint);
    if (cookie !== undefined) edit.add("Set-Cookie", cookie);
  }

  nextUpstream(): HttpUpstream | undefined {
    return this.next()?.http1;
  }

  next(): EndpointUpstream | undefined {
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

  readonly ended = (): void => {
    this.#context.requests.end(this.#exchange.downstream);
    this.#leaveSeat();
    const { names } = this.#chosen.route;
    const seconds = (performance.now() - this.#seat.startedMs) / 1000;
    this.#context.metrics.requestEnded(this.#exchange.protocol, this.#code, names, seconds, this.#trace);
    this.#trace?.end(this.#code);
    if (this.#context.accessLog === undefined) return;
    const facts = factsOf(this.#exchange, this.#chosen.route, this.#seat.startedMs, this.#trace);
    logExchange({ ...facts, endpoint: addressOf(this.#endpoint) }, this.#code, this.#context);
  };
}

function answer(
  exchange: IncomingExchange,
  given: IngressAnswer,
  route: RouteBackend | undefined,
  context: IngressContext,
): void {
  const { downstream, protocol } = exchange;
  context.requests.closeIfDraining(downstream);
  write(downstream, given);
  context.metrics.requestEnded(protocol, given.status, route?.names, 0);
  const trace = traceExchange(downstream, exchange, route, context);
  trace?.end(given.status);
  if (context.accessLog !== undefined)
    logExchange(factsOf(exchange, route, performance.now(), trace), given.status, context);
}

type ExchangeFacts = IncomingExchange &
  Pick<ExchangeEnd, "route" | "startedMs" | "target" | "endpoint" | "trace">;

/** Reads the target now, because the API leg replaces it. */
function factsOf(
  exchange: IncomingExchange,
  route: RouteBackend | undefined,
  startedMs: number,
  trace: RequestTrace | undefined,
): ExchangeFacts {
  return { ...exchange, route: route?.names, startedMs, target: exchange.downstream.target, trace };
}

function logExchange(facts: ExchangeFacts, status: number, { accessLog }: IngressContext): void {
  const { method, headers, bodyBytes: responseBytes } = facts.downstream;
  accessLog?.write({ ...facts, method, headers, status, responseBytes });
}

export function addressOf({ endpoint }: EndpointUpstream): string {
  return joinHostPort(endpoint.host, endpoint.port);
}

function write(downstream: HttpDownstream, { status, headers, body }: IngressAnswer): void {
  const parts = downstream.method === "HEAD" || body.length === 0 ? [] : [body];
  downstream.respondWhole(status, reasonPhrase(status), headers, parts, []);
  if (!downstream.isBodyComplete) downstream.discardBody(UNREAD_BODY_LINGER_MS);
}
