import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { StatusError } from "../api/status.ts";
import { answerAndClose } from "../gateway/answer.ts";
import { carryForwarded } from "../gateway/carry-forwarded.ts";
import { PendingClient } from "../gateway/pending-client.ts";
import { forwardUpgrade, type WaitingClient } from "../upstream/forward-upgrade.ts";
import { type HeaderList, headerListOf, withoutHeaders } from "../upstream/header-list.ts";
import { UpstreamError } from "../upstream/upstream-error.ts";
import { type ChosenUpstream, chooseBackend } from "./choose-backend.ts";
import { forwardedHeaders, originOf, type RequestOrigin } from "./forward-request.ts";
import { type IngressAnswer, ingressAnswer, upstreamProblem } from "./ingress-answer.ts";
import type { IngressContext } from "./ingress-context.ts";
import { type IngressRequest, readIngressRequest } from "./ingress-request.ts";

/** One request to switch protocols over HTTP/1.1: WebSocket, SPDY, or whatever `Upgrade` names. Never rejects. */
export async function forwardUpgradeRequest(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  context: IngressContext,
): Promise<void> {
  const headers = headerListOf(request.rawHeaders);
  const origin = originOf(request.socket);
  const refuse = (answer: IngressAnswer): void => {
    context.metrics.upgradeAnswered("http/1.1", answer.status);
    const lines = withoutHeaders(answer.headers, ["content-length", "date"]);
    answerAndClose(socket, answer.status, lines, answer.body, {
      clock: context.clock,
      lingerTimes: context.timeouts,
    });
  };
  // Without a listener an ECONNRESET would end the process.
  socket.on("error", () => socket.destroy());
  const read = readIngressRequest(request.method ?? "GET", request.url ?? "/", headers);
  if ("problem" in read) return refuse(ingressAnswer(400, read.problem, headers));
  const chosen = chooseBackend(read, headers, origin.isTls, context);
  if (chosen.type === "answer") return refuse(chosen.answer);
  if (chosen.type === "local") {
    request.url = chosen.target;
    return chosen.gateway.handleUpgrade(request, socket, head);
  }
  const client = new PendingClient(socket, head);
  try {
    await switchProtocols(client, { request: read, headers, origin, chosen, context });
    context.metrics.upgradeAnswered("http/1.1", 101);
  } catch (error) {
    client.release();
    if (error instanceof UpstreamError && error.code === "aborted") socket.destroy();
    else refuse(answerFor(error, headers, context));
  }
}

export interface UpgradeExchange {
  readonly request: IngressRequest;
  readonly headers: HeaderList;
  readonly origin: RequestOrigin;
  readonly chosen: ChosenUpstream;
  readonly context: IngressContext;
}

/** Dials endpoints until one takes the connection; what it answers is the answer. Throws UpstreamError and StatusError. */
export async function switchProtocols(client: WaitingClient, exchange: UpgradeExchange): Promise<void> {
  const { request, headers, origin, chosen, context } = exchange;
  const giveBack = context.sessions.admit();
  const timeouts = { ...context.timeouts, idleMs: chosen.tunnelIdleTimeoutMs };
  let isCarried = false;
  try {
    for (let upstream = chosen.upstream; ; ) {
      try {
        await forwardUpgrade(client, {
          endpoint: upstream.endpoint,
          method: request.method,
          path: chosen.target,
          headers,
          editHeaders: (lines) => forwardedHeaders(lines, request, origin, context),
          allowedProtocols: "any",
          dialTimeoutMs: timeouts.dialMs,
          responseHeaderTimeoutMs: chosen.responseTimeoutMs ?? timeouts.upgradeResponseMs,
          maxResponseHeadBytes: context.limits.maxUpgradeResponseHeadBytes,
          carry: (downstream, answered) => {
            isCarried = true;
            carryForwarded(downstream, answered, { ...context, timeouts }, giveBack);
          },
        });
        return;
      } catch (error) {
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

export function answerFor(error: unknown, headers: HeaderList, { logger }: IngressContext): IngressAnswer {
  if (error instanceof StatusError) return ingressAnswer(error.code, error.message, headers);
  if (error instanceof UpstreamError) {
    const { status, message } = upstreamProblem(error);
    return ingressAnswer(status, message, headers);
  }
  logger.error({ error }, "an upgrade failed unexpectedly");
  return ingressAnswer(500, "the gateway failed to handle the request", headers);
}
