import type { Duplex } from "node:stream";
import type { UpgradeResponse } from "@sluice/client/internal/http/upgrade/upgrade-request";
import type { DialOptions, UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { NodeEndpoint } from "../../cluster/locate.ts";
import type { DialTicket } from "../../nodes/known-nodes.ts";
import type { PathFailure } from "../../nodes/node-capability.ts";
import type { ClusterContext, KubeletOptions, ResumableRunContext } from "../../sessions/context.ts";
import { type Plan, planAfter, webSocketPathOf } from "../../sessions/plan.ts";
import { type ResumableUpgradeOptions, requestSession } from "../../sessions/request-session.ts";
import { dialingError } from "../../sessions/upstream-errors.ts";
import type { UpstreamRequest } from "../../sessions/upstream-request.ts";
import type { ApiServerAdmission } from "./admit-streaming.ts";

/**
 * Requests the session from the node. Throws StatusError with kube-apiserver's texts, 503 at once
 * if the node is known to be dead, and UpstreamError "aborted" if the client left.
 */
export async function dialNode(
  { target, request, plan, trace }: ApiServerAdmission,
  kubeletRequest: UpstreamRequest,
  signal: AbortSignal,
  gateway: ClusterContext & ResumableRunContext,
): Promise<UpgradeResponse> {
  const endpoint = await endpointOf(target.node, gateway.kubelet);
  const ticket = gateway.nodes.admit(target.node);
  let isSpare = false;
  try {
    const { connect: connectDirectly, connectSession } = gateway.kubelet;
    const connect =
      connectSession === undefined
        ? connectDirectly?.bind(undefined, endpoint)
        : (options: DialOptions) => connectSession(endpoint, options, () => (isSpare = true));
    const response = await requestFromNode(target.node.name, plan, gateway, (resume) =>
      requestSession(endpoint, kubeletRequest, gateway, { signal, connect, resume, trace }),
    );
    ticket.answered();
    return response;
  } catch (error) {
    settle(ticket, error);
    if (!(error instanceof UpstreamError) || error.code === "aborted") throw error;
    const found = unansweredPath(error);
    // A node may have just closed an idle connection, which says nothing about the path.
    const failure = isSpare && found === "no-answer" ? undefined : found;
    if (failure !== undefined && planAfter(plan, request.subresource) !== undefined) {
      gateway.nodes.recordFailure(target.node, webSocketPathOf(request.subresource), failure);
    }
    throw dialingError(error);
  }
}

/**
 * If the node is a Sluice that agrees, and there is room, the session survives the loss of its
 * connections to the node (protocols/resume).
 */
async function requestFromNode(
  node: string,
  plan: Plan,
  { clock, logger, resumable }: ResumableRunContext,
  request: (resume?: ResumableUpgradeOptions) => Promise<UpgradeResponse>,
): Promise<UpgradeResponse> {
  const settle = plan.offersNewProtocol ? resumable?.admitUpstream() : undefined;
  if (resumable === undefined || settle === undefined) return request();
  let socket: Duplex | undefined;
  try {
    const response = await request({
      clock,
      windowBytes: resumable.windowBytes,
      note: (text) => logger.info({ node, event: text }, "a session with a node changed its connection"),
      onChange: (event) => resumable.upstreamChanged(event),
    });
    if (response.kind === "switched") socket = response.socket;
    return response;
  } finally {
    settle(socket);
  }
}

/**
 * Dial failures and timeouts mark the node dead; a connection that breaks, or a malformed reply, does
 * not.
 */
function settle(ticket: DialTicket, error: unknown): void {
  if (!(error instanceof UpstreamError) || error.code === "aborted") ticket.abandoned();
  else if (error.code === "dial-failed" || error.code === "response-timeout")
    ticket.failed(error.message, wasRefused(error));
  else ticket.answered();
}

function wasRefused({ cause }: UpstreamError): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "ECONNREFUSED";
}

/** What a missing or invalid answer shows about the path; undefined if nothing. */
function unansweredPath({ code, message }: UpstreamError): PathFailure | undefined {
  switch (code) {
    case "response-timeout":
      return "no-answer";
    case "closed-before-response":
      // A server reports a refused client certificate only here, and refuses it on every path.
      return message.startsWith("remote error: tls") ? undefined : "no-answer";
    case "invalid-status":
    case "malformed-response":
    case "response-head-too-large":
    case "upgrade-mismatch":
      return "wrong-answer";
    default:
      return undefined;
  }
}

/** Throws StatusError for an address that kube-apiserver would fail to dial, too. */
export async function endpointOf(node: NodeEndpoint, kubelet: KubeletOptions): Promise<UpstreamEndpoint> {
  try {
    return await kubelet.endpointOf(node);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw WIRE_ERRORS["dial-failed"].streaming({ error: message });
  }
}
