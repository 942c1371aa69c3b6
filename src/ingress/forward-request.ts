import type { Socket } from "node:net";
import { withForwardedOrigin } from "../upstream/forwarded-headers.ts";
import { type HeaderLine, type HeaderList, withHeader } from "../upstream/header-list.ts";
import type { HttpDownstream } from "../upstream/http-downstream.ts";
import { forwardExchange } from "../upstream/http-forwarder.ts";
import { forwardOverHttp2 } from "../upstream/http2-forwarder.ts";
import type { UpstreamError } from "../upstream/upstream-error.ts";
import { type ChosenUpstream, chooseBackend } from "./choose-backend.ts";
import {
  type IngressAnswer,
  ingressAnswer,
  reasonPhrase,
  upstreamProblem,
  withOwnLines,
} from "./ingress-answer.ts";
import type { IngressContext, LocalGateway } from "./ingress-context.ts";
import { type IngressRequest, readIngressRequest } from "./ingress-request.ts";

/** The appProtocol of a Service whose pods speak HTTP/2 with prior knowledge (KEP-3726). */
const H2C_APP_PROTOCOL = "kubernetes.io/h2c";

/** The connection that a request came on. */
export interface RequestOrigin {
  readonly isTls: boolean;
  readonly remoteAddress: string;
}

export interface IncomingExchange extends RequestOrigin {
  readonly downstream: HttpDownstream;
  readonly protocol: "http/1.1" | "h2";
  readonly expectsContinue: boolean;
  /** Gives the exchange to this gateway's own API leg, with the target that it has there. */
  handOver(gateway: LocalGateway, target: string): void;
}

/** One plain request, from its head to the end of its response. Never rejects. */
export async function forwardRequest(exchange: IncomingExchange, context: IngressContext): Promise<void> {
  const { downstream, isTls } = exchange;
  const request = readIngressRequest(downstream.method, downstream.target, downstream.headers);
  if ("problem" in request) {
    answer(exchange, ingressAnswer(400, request.problem, downstream.headers), context);
    return;
  }
  const chosen = chooseBackend(request, downstream.headers, isTls, context);
  if (chosen.type === "answer") answer(exchange, chosen.answer, context);
  else if (chosen.type === "local") {
    if (exchange.expectsContinue) downstream.sendContinue();
    exchange.handOver(chosen.gateway, chosen.target);
  } else await forward(exchange, request, chosen, context);
}

async function forward(
  exchange: IncomingExchange,
  request: IngressRequest,
  chosen: ChosenUpstream,
  context: IngressContext,
): Promise<void> {
  const { downstream, protocol } = exchange;
  const startedMs = performance.now();
  let code = 0;
  const editResponseHeaders = (headers: HeaderList, status: number): HeaderList => {
    code = status;
    return withOwnLines(headers);
  };
  const options = {
    path: chosen.target,
    editHeaders: (headers: HeaderList) => forwardedHeaders(headers, request, exchange, context),
    editResponseHeaders,
    responseHeaderTimeoutMs: chosen.responseTimeoutMs,
    bodySilenceTimeoutMs: chosen.bodyTimeoutMs,
    respondError: (error: UpstreamError) => {
      const { status, message } = upstreamProblem(error);
      code = status;
      context.logger.debug(
        { code: error.code, endpoint: chosen.upstream.endpoint.host },
        "an exchange failed",
      );
      write(downstream, ingressAnswer(status, message, downstream.headers));
    },
  };
  if (chosen.appProtocol === H2C_APP_PROTOCOL) {
    const nextUpstream = () => chosen.next()?.http2;
    await forwardOverHttp2(downstream, { ...options, upstream: chosen.upstream.http2, nextUpstream });
  } else {
    await forwardExchange(downstream, {
      ...options,
      upstream: chosen.upstream.http1,
      expectsContinue: exchange.expectsContinue,
      rejectRedirects: chosen.rejectRedirects,
      nextUpstream: () => chosen.next()?.http1,
    });
  }
  context.metrics.requestEnded(protocol, code, (performance.now() - startedMs) / 1000);
}

/** X-Forwarded-* by whether the peer is trusted; Host stays what the client wrote. */
export function forwardedHeaders(
  headers: HeaderList,
  { authority }: IngressRequest,
  { isTls, remoteAddress }: RequestOrigin,
  { edge }: IngressContext,
): HeaderLine[] {
  return withForwardedOrigin(withHeader(headers, "Host", authority), {
    peerAddress: remoteAddress,
    isPeerTrusted: edge.isTrustedProxy(remoteAddress),
    protocol: isTls ? "https" : "http",
    host: authority,
  });
}

function answer(
  { downstream, protocol }: IncomingExchange,
  given: IngressAnswer,
  context: IngressContext,
): void {
  write(downstream, given);
  context.metrics.requestEnded(protocol, given.status, 0);
}

/** A request's body is not waited for. */
const UNREAD_BODY_LINGER_MS = 5_000;

function write(downstream: HttpDownstream, { status, headers, body }: IngressAnswer): void {
  const sink = downstream.respond(status, reasonPhrase(status), headers);
  if (downstream.method !== "HEAD") sink.write(body);
  downstream.finish([]);
  if (!downstream.isBodyComplete) downstream.discardBody(UNREAD_BODY_LINGER_MS);
}

export function originOf(socket: Socket & { encrypted?: boolean }): RequestOrigin {
  return { isTls: socket.encrypted === true, remoteAddress: socket.remoteAddress ?? "" };
}
