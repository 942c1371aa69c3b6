import { randomBytes } from "node:crypto";
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { carryForwarded } from "../gateway/carry-forwarded.ts";
import { type HeaderLine, headerListOf, withoutHeaders } from "../upstream/header-list.ts";
import { upgradeHeaders, withoutHopByHop } from "../upstream/hop-by-hop.ts";
import { http1Lines, http2Headers } from "../upstream/http2-downstream.ts";
import { isSwitchedTo, requestUpgrade, type UpgradeResponse } from "../upstream/upgrade-request.ts";
import { UpstreamError } from "../upstream/upstream-error.ts";
import { type ChosenUpstream, chooseBackend } from "./choose-backend.ts";
import { forwardedHeaders, type RequestOrigin } from "./forward-request.ts";
import { answerFor } from "./forward-upgrade-request.ts";
import { type IngressAnswer, ingressAnswer } from "./ingress-answer.ts";
import type { IngressContext } from "./ingress-context.ts";
import { readIngressRequest } from "./ingress-request.ts";

/**
 * A WebSocket on an HTTP/2 stream (extended CONNECT, RFC 8441), carried to the backend as an upgrade over HTTP/1.1. The stream's bytes are
 * the WebSocket's: nothing is translated. Never rejects.
 */
export async function forwardWebSocketStream(
  stream: ServerHttp2Stream,
  pseudo: IncomingHttpHeaders,
  rawHeaders: readonly string[],
  origin: RequestOrigin,
  context: IngressContext,
): Promise<void> {
  const headers = http1Lines(headerListOf(rawHeaders), pseudo[":authority"]);
  const refuse = (answer: IngressAnswer): void => {
    context.metrics.upgradeAnswered("h2", answer.status);
    if (stream.destroyed || stream.headersSent) return;
    stream.respond({ ":status": answer.status, ...http2Headers(answer.headers) });
    stream.end(answer.body);
  };
  const gone = new AbortController();
  stream.on("error", () => {});
  stream.on("close", () => gone.abort());
  // Plain CONNECT would make a forward proxy of this gateway.
  if (pseudo[":protocol"] !== "websocket") {
    return refuse(ingressAnswer(501, "only websocket is served by extended CONNECT", headers));
  }
  const read = readIngressRequest("GET", pseudo[":path"] ?? "", headers);
  if ("problem" in read) return refuse(ingressAnswer(400, read.problem, headers));
  const chosen = chooseBackend(read, headers, origin.isTls, context);
  if (chosen.type === "answer") return refuse(chosen.answer);
  if (chosen.type === "local") {
    return refuse(ingressAnswer(501, "this gateway takes WebSockets over HTTP/1.1 only", headers));
  }
  const lines: HeaderLine[] = [
    ...withoutHeaders(headers, ["sec-websocket-key"]),
    // HTTP/2 has no key: the stream itself proves that the client meant a WebSocket (RFC 8441 section 5).
    ["Sec-WebSocket-Key", randomBytes(16).toString("base64")],
  ];
  let giveBack: (() => void) | undefined;
  try {
    giveBack = context.sessions.admit();
    const edited = forwardedHeaders(withoutHopByHop(lines), read, origin, context);
    const response = await dialInTurn(chosen, upgradeHeaders(edited, "websocket"), gone.signal, context);
    if (response.kind === "refused") {
      relayRefusal(response, stream, context);
    } else if (isSwitchedTo(response, "websocket") && !stream.destroyed) {
      const accepted = withoutHeaders(withoutHopByHop(response.rawHeaders), ["sec-websocket-accept"]);
      stream.respond({ ":status": 200, ...http2Headers(accepted) });
      context.metrics.upgradeAnswered("h2", 200);
      const timeouts = { ...context.timeouts, idleMs: chosen.tunnelIdleTimeoutMs };
      const upstream = { socket: response.socket, head: response.head };
      carryForwarded({ socket: stream, head: Buffer.alloc(0) }, upstream, { ...context, timeouts }, giveBack);
      giveBack = undefined;
    } else {
      response.socket.destroy();
      throw new UpstreamError("upgrade-mismatch", "missing upgrade headers in response");
    }
  } catch (error) {
    if (error instanceof UpstreamError && error.code === "aborted") stream.close(constants.NGHTTP2_CANCEL);
    else refuse(answerFor(error, headers, context));
  } finally {
    giveBack?.();
  }
}

async function dialInTurn(
  chosen: ChosenUpstream,
  headers: readonly HeaderLine[],
  signal: AbortSignal,
  { timeouts, limits }: IngressContext,
): Promise<UpgradeResponse> {
  for (let upstream = chosen.upstream; ; ) {
    try {
      return await requestUpgrade({
        endpoint: upstream.endpoint,
        method: "GET",
        path: chosen.target,
        headers,
        dialTimeoutMs: timeouts.dialMs,
        responseHeaderTimeoutMs: chosen.responseTimeoutMs ?? timeouts.upgradeResponseMs,
        maxResponseHeadBytes: limits.maxUpgradeResponseHeadBytes,
        signal,
      });
    } catch (error) {
      const isDial = error instanceof UpstreamError && error.code === "dial-failed";
      const next = isDial ? chosen.next() : undefined;
      if (next === undefined) throw error;
      upstream = next;
    }
  }
}

function relayRefusal(
  { status, rawHeaders, body }: Extract<UpgradeResponse, { kind: "refused" }>,
  stream: ServerHttp2Stream,
  { metrics }: IngressContext,
): void {
  metrics.upgradeAnswered("h2", status);
  if (stream.destroyed) {
    body.destroy();
    return;
  }
  stream.respond({ ":status": status, ...http2Headers(withoutHopByHop(rawHeaders)) });
  body.on("error", () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
  body.pipe(stream);
  stream.on("close", () => body.destroy());
}
