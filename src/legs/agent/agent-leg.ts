// src/legs/agent: `sluice agent`: a loopback listener that sends everything to one API server with
// its user's credentials

import { ConnectError, shouldFallBack } from "@sluice/client";
import { StatusError } from "@sluice/client/internal/api/status";
import { statusOfBody } from "@sluice/client/internal/api/status-body";
import { type HeaderLine, type HeaderList, headerValue } from "@sluice/client/internal/http/header-list";
import type { UpgradeResponse } from "@sluice/client/internal/http/upgrade/upgrade-request";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { quotedRefusal } from "@sluice/client/internal/refusal";
import { REASON_HEADER } from "../../access/policy/evaluate-policy.ts";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { NodeIncarnation } from "../../nodes/known-nodes.ts";
import { type PathFailure, refusedPath } from "../../nodes/node-capability.ts";
import { type ClientOffer, requireCarriableUpgrade } from "../../sessions/client-offer.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import type { Admission, Fallback, Leg, Refusal } from "../../sessions/leg.ts";
import { makePlan, type Plan, planForWebSocketOnly, webSocketPathOf } from "../../sessions/plan.ts";
import { requestSession } from "../../sessions/request-session.ts";
import {
  parseStreamingRequest,
  type StreamingPath,
  type Subresource,
} from "../../sessions/streaming-request.ts";
import { type UpstreamRequest, upstreamRequestFor } from "../../sessions/upstream-request.ts";
import { type AgentContext, type AgentUpstream, inUsersName, unansweredError } from "./agent-upstream.ts";

/** A session to request from the API server, with the client's path and query. */
interface AgentAdmission extends Admission {
  readonly target: string;
}

/**
 * A session of the local user: planned here and requested from the API server instead of a node.
 * The API server alone authorizes it, by the user's own credentials.
 */
export function agentLeg(path: StreamingPath, user: UserInfo, agent: AgentContext): Leg<AgentAdmission> {
  const apiServer = { name: agent.upstream.authority, incarnation: "" };
  return {
    path,
    admit: async (incoming) => admit(path, user, incoming, apiServer, agent),
    dial: (admission, signal) => dial(admission, signal, agent),
    switched: ({ plan, request: { subresource } }) => {
      if (plan.kind === "bridge") agent.nodes.recordSuccess(apiServer, webSocketPathOf(subresource));
      return undefined;
    },
    fallback: fallbackOver(apiServer, agent),
  };
}

function admit(
  path: StreamingPath,
  user: UserInfo,
  incoming: IncomingStreaming,
  apiServer: NodeIncarnation,
  { nodes }: AgentContext,
): AgentAdmission {
  const request = parseStreamingRequest(path, incoming);
  if (request.offer.transport === "none") throw WIRE_ERRORS["no-upgrade"].streaming();
  requireCarriableUpgrade(request);
  const { subresource, offer, reason } = request;
  const refusesWebSocket = nodes.avoidedPathsOf(apiServer).includes(webSocketPathOf(subresource));
  return {
    user,
    request,
    node: apiServer.name,
    target: incoming.target,
    plan: planForApiServer(subresource, offer, refusesWebSocket),
    policy: { rule: undefined, reason },
  };
}

/** If no answer arrived, the StatusError's cause says why. */
async function dial(
  { request, target, plan }: AgentAdmission,
  signal: AbortSignal,
  agent: AgentContext,
): Promise<UpgradeResponse> {
  try {
    const asked = upstreamRequestFor(request, targetFor(plan, target), plan);
    return await dialUpstream(request.headers, asked, signal, agent);
  } catch (error) {
    const refusal = unansweredError(error);
    if (refusal instanceof StatusError && refusal !== error) refusal.cause = error;
    throw refusal;
  }
}

/**
 * If client-go would fall back, Sluice uses the client's own protocol. If the API server then
 * accepts it, Sluice tries that protocol first for a while.
 */
function fallbackOver(
  apiServer: NodeIncarnation,
  { nodes, metrics, note }: AgentContext,
): Fallback<AgentAdmission> {
  return {
    planAfter: planAfterRefusal,
    replan: (admission, plan, refusal) => {
      if (refusal.answer === undefined && !shouldFallBack(upgradeFailureOf(refusal.error))) return undefined;
      note(`${admission.request.subresource} fallback: ${reasonOf(refusal)}`);
      return { ...admission, plan };
    },
    fellBack: ({ request: { subresource } }, refusal) => {
      const cause = causeOf(refusal);
      // Refused permission and overload say nothing about the path: the next session may succeed.
      if (cause === undefined) return;
      nodes.recordFailure(apiServer, webSocketPathOf(subresource), cause);
      metrics.nodes.fellBack(subresource, cause);
    },
  };
}

/** Describes the refusal for the user. */
function reasonOf(refusal: Refusal): string {
  if (refusal.answer === undefined) {
    const failure = upgradeFailureOf(refusal.error);
    return failure instanceof Error ? failure.message : String(failure);
  }
  const { status, statusMessage } = refusal.answer;
  const words = statusOfBody(refusal.text)?.message ?? quotedRefusal(Buffer.from(refusal.text.slice(0, 200)));
  return `${status} ${statusMessage}: ${words}`;
}

/** What the refusal shows about the path; undefined if it is about the request. */
function causeOf(refusal: Refusal): PathFailure | undefined {
  if (refusal.answer === undefined) return "wrong-answer";
  if (statusOfBody(refusal.text)?.reason === "Forbidden") return undefined;
  return refusedPath(refusal.answer.status, refusal.text);
}

/** A complete response that is not a valid 101, as the client library reports it. */
function upgradeFailureOf({ cause }: StatusError): unknown {
  if (!(cause instanceof UpstreamError)) return cause;
  if (cause.code === "invalid-status") return new ConnectError("http", cause.message);
  if (cause.code === "upgrade-mismatch") return new ConnectError("handshake", cause.message);
  return cause;
}

/** Only a legacy port-forward names its ports in the URL, and bridges do not use that protocol upstream. */
function targetFor({ kind }: Plan, target: string): string {
  const at = target.indexOf("?");
  if (kind !== "bridge" || at === -1) return target;
  const kept = target
    .slice(at + 1)
    .split("&")
    .filter((part) => !/^ports(?:=|$)/.test(part));
  return kept.length === 0 ? target.slice(0, at) : `${target.slice(0, at)}?${kept.join("&")}`;
}

/**
 * A session reaches the API server as WebSocket v5 or the tunnel, whatever the client speaks.
 * `refusesWebSocket`: the server has refused both before. Pure.
 */
function planForApiServer(subresource: Subresource, offer: ClientOffer, refusesWebSocket: boolean): Plan {
  const plan = planForWebSocketOnly(subresource, offer);
  return (refusesWebSocket ? planAfterRefusal(plan) : undefined) ?? plan;
}

/**
 * The plan after the API server refused a bridge's WebSocket; undefined if the client's own
 * protocol was used already.
 */
export function planAfterRefusal(plan: Plan): Plan | undefined {
  if (plan.kind !== "bridge") return undefined;
  return makePlan("pass-through", "upstream-refused-websocket", { path: "api-server" });
}

/**
 * Requests the session with the user's credentials, and once more with new ones after a 401. Throws
 * UpstreamError, ConnectError for a failing proxy, and StatusError 503 without credentials.
 */
async function dialUpstream(
  clientHeaders: HeaderList,
  request: UpstreamRequest,
  signal: AbortSignal,
  agent: AgentContext,
): Promise<UpgradeResponse> {
  const { upstream } = agent;
  const before = await upstream.credentials();
  const first = await send(clientHeaders, request, before, signal, agent);
  if (first.kind !== "refused" || first.status !== 401) return first;
  upstream.forgetCredentials();
  const after = await upstream.credentials();
  if (isSame(before, after)) return first;
  first.body.destroy();
  return send(clientHeaders, request, after, signal, agent);
}

async function send(
  clientHeaders: HeaderList,
  request: UpstreamRequest,
  credentials: HeaderList,
  signal: AbortSignal,
  agent: AgentContext,
): Promise<UpgradeResponse> {
  const { upstream, clock } = agent;
  const { endpoint, trace } = upstream;
  const linesWith = (shown: HeaderList): HeaderList => linesFor(clientHeaders, request, shown, upstream);
  const headers = linesWith(credentials);
  const path = upstream.pathOf(request.path);
  const startedMs = clock.now();
  trace.request?.(request.method, upstream.origin + path, headers);
  const connect = upstream.connect.bind(undefined, endpoint);
  const resume = {
    clock,
    renewHeaders: async () => {
      // The session may outlive its first credentials.
      upstream.forgetCredentials();
      return linesWith(await upstream.credentials());
    },
    note: (text: string) => agent.note(text),
  };
  const session = { ...request, path, headers };
  const response = await requestSession(endpoint, session, agent, { signal, connect, resume });
  const { status, statusMessage, rawHeaders } = response;
  trace.response?.(status, statusMessage, rawHeaders, clock.now() - startedMs);
  return response;
}

function linesFor(
  clientHeaders: HeaderList,
  request: UpstreamRequest,
  credentials: HeaderList,
  { authority }: AgentUpstream,
): HeaderList {
  // Takes impersonation from the client's request; the gateway's own has none.
  const asked = clientHeaders.filter(([name]) => name.toLowerCase().startsWith("impersonate-"));
  const lines = [...request.headers, ...asked, ...reasonLines(clientHeaders)];
  return inUsersName(lines, { credentials, authority });
}

function isSame(before: HeaderList, after: HeaderList): boolean {
  return JSON.stringify(before) === JSON.stringify(after);
}

/**
 * A gateway consumes these headers. The agent must forward them, because its API server may be a
 * gateway that requires a reason.
 */
function reasonLines(headers: HeaderList): HeaderLine[] {
  const reason = headerValue(headers, REASON_HEADER);
  return reason === undefined ? [] : [[REASON_HEADER, reason]];
}
