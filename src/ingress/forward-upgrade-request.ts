import type { Duplex } from "node:stream";
import { StatusError } from "@sluice/client/internal/api/status";
import { type HeaderList, withoutHeaders } from "@sluice/client/internal/http/header-list";
import { abortSocket, isHttp2Stream } from "@sluice/client/internal/net/abort-socket";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { reportFault } from "@sluice/client/internal/observability/faults";
import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { forwardUpgrade, type WaitingClient } from "../http/upgrade/forward-upgrade.ts";
import { answerAndClose } from "../listeners/answer.ts";
import type { RequestHead } from "../listeners/websocket-stream.ts";
import type { RouteNames } from "../observability/ingress-metrics.ts";
import { carryForwarded } from "../sessions/carry-forwarded.ts";
import { PendingClient } from "../sessions/incoming-request.ts";
import type { SessionReport } from "../sessions/session.ts";
import {
  type ChosenUpstream,
  chooseBackend,
  type IngressAnswer,
  ingressAnswer,
  upstreamRefusal,
} from "./choose-backend.ts";
import { addressOf } from "./forward-request.ts";
import type { ExchangeEnd, IngressContext } from "./ingress-context.ts";
import {
  addForwardedHeaders,
  type IngressRequest,
  type RequestOrigin,
  readIngressRequest,
  traceExchange,
} from "./ingress-request.ts";

/** A request to switch protocols, and its connection. */
export interface IncomingUpgrade {
  readonly origin: RequestOrigin;
  readonly request: RequestHead;
  /** The connection, or the HTTP/2 stream. */
  readonly client: Duplex;
  /** Bytes that were read after the request. */
  readonly early: Buffer;
  readonly protocol: "http/1.1" | "h2";
}

/**
 * Forwards a request to switch protocols over HTTP/1.1, also for a WebSocket on an HTTP/2 stream.
 * Leaves the bytes unchanged. Resolves with the status, if one was sent. Never rejects.
 */
export async function forwardUpgradeRequest(
  { request, client: socket, early, protocol, origin }: IncomingUpgrade,
  context: IngressContext,
): Promise<number | undefined> {
  const { method, target, headers } = request;
  const { isTls, remoteAddress } = origin;
  const facts = { isTls, remoteAddress, startedMs: performance.now(), protocol, method, target, headers };
  const log = (end: LoggedEnd): void => context.accessLog?.write({ ...facts, ...end, trace });
  let route: RouteNames | undefined;
  let trace: RequestTrace | undefined;
  const refuse = (answer: IngressAnswer): number => {
    context.metrics.requestEnded(protocol, answer.status, route, undefined);
    trace?.end(answer.status);
    log({ route, status: answer.status, responseBytes: answer.body.byteLength });
    const lines = withoutHeaders(answer.headers, ["content-length", "date"]);
    answerAndClose(socket, answer.status, lines, answer.body, {
      clock: context.clock,
      lingerTimes: context.timeouts,
    });
    return answer.status;
  };
  // Without a listener an ECONNRESET would end the process.
  socket.on("error", () => socket.destroy());
  const read = readIngressRequest(method, target, headers, context.limits.maxRequestHeaders);
  if ("refusal" in read) return refuse(ingressAnswer(read.refusal, headers));
  const chosen = chooseBackend(read, headers, origin, context);
  route = chosen.route?.names;
  if (chosen.type === "answer") return refuse(chosen.answer);
  if (chosen.type === "local") {
    // The session's own log line says how it ended.
    if (context.accessLog !== undefined)
      socket.once("close", () => log({ route, status: 0, responseBytes: 0 }));
    const handedOver = { ...request, target: chosen.target };
    return await chosen.gateway.listener.answerUpgrade(handedOver, socket, early);
  }
  trace = traceExchange(facts, origin, chosen.route, context);
  const client = new PendingClient(socket, early);
  try {
    const switched = protocol === "h2" ? 200 : 101;
    const onReport = ({ downstreamBytes, upstreamBytes }: SessionReport, endpoint: string): void =>
      log({
        route,
        endpoint,
        status: switched,
        responseBytes: downstreamBytes,
        requestBytes: upstreamBytes,
      });
    let responseBytes = 0;
    const onRefusedBytes = (bytes: number): void => {
      responseBytes += bytes;
    };
    const { status, endpoint } = await switchProtocols(client, {
      request: read,
      headers,
      origin,
      chosen,
      context,
      trace,
      onReport,
      onRefusedBytes,
    });
    const answered = status === 101 ? switched : status;
    trace?.end(answered);
    context.metrics.requestEnded(protocol, answered, route, undefined);
    if (status !== 101) log({ route, endpoint, status, responseBytes });
    return answered;
  } catch (error) {
    client.release();
    if (error instanceof UpstreamError) context.problems.judgeError(chosen, error);
    if (error instanceof UpstreamError && error.code === "aborted") {
      trace?.end(0);
      log({ route, status: 0, responseBytes: 0 });
      abortSocket(socket);
      return undefined;
    }
    return refuse(answerFor(error, headers));
  }
}

type LoggedEnd = Pick<ExchangeEnd, "route" | "endpoint" | "status" | "responseBytes" | "requestBytes">;

interface UpgradeExchange {
  readonly request: IngressRequest;
  readonly headers: HeaderList;
  readonly origin: RequestOrigin;
  readonly chosen: ChosenUpstream;
  readonly context: IngressContext;
  readonly trace: RequestTrace | undefined;
  /** An upgraded connection ended. */
  onReport(report: SessionReport, endpoint: string): void;
  /** A part of a refusal's body was read. */
  onRefusedBytes(bytes: number): void;
}

/**
 * Dials endpoints until one connects, and relays its answer; resolves with its status. Throws
 * UpstreamError and StatusError.
 */
async function switchProtocols(
  client: WaitingClient,
  exchange: UpgradeExchange,
): Promise<{ readonly status: number; readonly endpoint: string }> {
  const { request, headers, origin, chosen, context } = exchange;
  const giveBack = context.sessions.admit();
  const timeouts = { ...context.timeouts, idleMs: chosen.tunnelIdleTimeoutMs };
  // An HTTP/2 client would take a 200 for a WebSocket, and streaming legs return no redirect.
  const isRelaying = !chosen.rejectRedirects && !isHttp2Stream(client.socket);
  const relayAnswersMs = isRelaying ? chosen.tunnelIdleTimeoutMs : undefined;
  let isCarried = false;
  try {
    for (let upstream = chosen.upstream; ; ) {
      try {
        const endpoint = addressOf(upstream);
        const status = await forwardUpgrade(client, {
          endpoint: upstream.endpoint,
          method: request.method,
          path: chosen.target,
          headers,
          editHeaders: (edit) => {
            addForwardedHeaders(edit, request, origin, chosen.forwardedPrefix);
            return edit;
          },
          editResponseHeaders: (lines) => {
            const cookie = chosen.cookieFor?.(upstream);
            return cookie === undefined ? lines : [...lines, ["Set-Cookie", cookie]];
          },
          allowedProtocols: "any",
          dialTimeoutMs: timeouts.dialMs,
          responseHeaderTimeoutMs: chosen.responseTimeoutMs ?? timeouts.upgradeResponseMs,
          maxResponseHeadBytes: context.limits.maxUpgradeResponseHeadBytes,
          relayAnswersMs,
          onRefusedBytes: exchange.onRefusedBytes,
          trace: exchange.trace,
          carry: (downstream, answered) => {
            isCarried = true;
            const span = exchange.trace?.begin("session");
            carryForwarded(
              downstream,
              answered,
              { ...context, timeouts },
              {
                onOver: giveBack,
                onReport: (report) => {
                  span?.end(report.code >= 500 ? report.cause : undefined);
                  exchange.onReport(report, endpoint);
                },
              },
            );
          },
        });
        return { status, endpoint };
      } catch (error) {
        upstream.dialFailed(error);
        const next =
          error instanceof UpstreamError && error.code === "dial-failed" ? chosen.next() : undefined;
        if (next === undefined) throw error;
        upstream = next;
      }
    }
  } finally {
    if (!isCarried) giveBack();
  }
}

function answerFor(error: unknown, headers: HeaderList): IngressAnswer {
  if (error instanceof StatusError) return ingressAnswer(error, headers);
  if (error instanceof UpstreamError) return ingressAnswer(upstreamRefusal(error), headers);
  reportFault("request", error);
  return ingressAnswer(WIRE_ERRORS["gateway-failed"].ingress(), headers);
}
