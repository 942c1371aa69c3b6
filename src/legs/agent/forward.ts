import { STATUS_CODES } from "node:http";
import { ConnectError } from "@sluice/client";
import type { StatusError } from "@sluice/client/internal/api/status";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import { isHttp2Stream } from "@sluice/client/internal/net/abort-socket";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { forwardUpgrade } from "../../http/upgrade/forward-upgrade.ts";
import { forwardExchange } from "../../http/upstream/http-forwarder.ts";
import { writeStatus } from "../../listeners/answer.ts";
import { exchangeTimesOf } from "../../listeners/exchange-times.ts";
import { carryForwarded } from "../../sessions/carry-forwarded.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import type { PendingClient } from "../../sessions/pending-client.ts";
import { forwardingError } from "../../sessions/upstream-errors.ts";
import { type AgentContext, inUsersName } from "./agent-upstream.ts";

/**
 * Forwards a request that is not an upgrade. Bodies, watches and followed logs stream in both
 * directions.
 */
export async function forwardRequest(
  { method, target }: IncomingStreaming,
  downstream: HttpDownstream,
  { upstream, clock, timeouts }: AgentContext,
): Promise<void> {
  const credentials = await upstream.credentials();
  const path = upstream.pathOf(target);
  const startedMs = clock.now();
  await forwardExchange(downstream, {
    upstream: upstream.http,
    path,
    ...exchangeTimesOf(target, timeouts),
    editHeaders: (edit) => {
      const lines = inUsersName(edit.lines(), { credentials, authority: upstream.authority });
      upstream.trace.request?.(method, upstream.origin + path, lines);
      return new HeaderEdit(lines);
    },
    editResponseHeaders: (edit, status) => {
      upstream.trace.response?.(status, STATUS_CODES[status] ?? "", edit.lines(), clock.now() - startedMs);
      // The client gets this 401; its next request uses credentials that are read again.
      if (status === 401) upstream.forgetCredentials();
    },
    respondError: (error) => writeStatus(downstream, unreachedError(error).status),
  });
}

/** Forwards any other upgrade unchanged, for example to a pod's or a service's own server. */
export async function forwardOtherUpgrade(
  incoming: IncomingStreaming,
  client: PendingClient,
  agent: AgentContext,
): Promise<void> {
  const { upstream, timeouts, limits } = agent;
  const credentials = await upstream.credentials();
  const path = upstream.pathOf(incoming.target);
  const giveBack = agent.sessions.admit();
  let isCarried = false;
  try {
    await forwardUpgrade(client, {
      endpoint: upstream.endpoint,
      connect: (options) => upstream.connect(upstream.endpoint, options),
      method: incoming.method,
      path,
      headers: incoming.headers,
      editHeaders: (edit) => {
        const lines = inUsersName(edit.lines(), { credentials, authority: upstream.authority });
        upstream.trace.request?.(incoming.method, upstream.origin + path, lines);
        return new HeaderEdit(lines);
      },
      dialTimeoutMs: timeouts.dialMs,
      responseHeaderTimeoutMs: timeouts.upgradeResponseMs,
      maxResponseHeadBytes: limits.maxUpgradeResponseHeadBytes,
      // As on the API-server leg: an API server may ignore an upgrade.
      relayAnswersMs: isHttp2Stream(client.socket) ? undefined : timeouts.streamIdleMs,
      carry: (downstream, answered) => {
        isCarried = true;
        carryForwarded(downstream, answered, agent, { onOver: giveBack });
      },
    });
  } catch (error) {
    throw unansweredError(error);
  } finally {
    if (!isCarried) giveBack();
  }
}

/**
 * The client's answer if the upstream gave none: a StatusError, or the error itself if the client
 * has left.
 */
export function unansweredError(error: unknown): unknown {
  if (error instanceof UpstreamError && error.code !== "aborted") return unreachedError(error);
  if (error instanceof ConnectError) return unreachedError(error);
  return error;
}

function unreachedError(error: UpstreamError | ConnectError): StatusError {
  if (error instanceof UpstreamError) return forwardingError(error);
  return WIRE_ERRORS["dial-failed"].forwarding({ error: error.message, upstream: "the API server" });
}
