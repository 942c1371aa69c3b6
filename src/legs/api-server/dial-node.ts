import type { Duplex } from "node:stream";
import { genericError, type StatusError } from "../../api/status.ts";
import type { NodeEndpoint } from "../../cluster/locate.ts";
import { headerValue } from "../../http/header-list.ts";
import {
  isSwitchedTo,
  type RefusedUpgrade,
  requestUpgrade,
  type SwitchedUpgrade,
  type UpgradeRequest,
  type UpgradeResponse,
} from "../../http/upgrade-request.ts";
import { checkWebSocketAnswer } from "../../http/websocket-request.ts";
import type { UpstreamEndpoint } from "../../net/dial.ts";
import { UpstreamError } from "../../net/upstream-error.ts";
import type { DialTicket } from "../../nodes/known-nodes.ts";
import type { PathFailure } from "../../nodes/node-capability.ts";
import type { GatewayContext, KubeletOptions } from "../../sessions/context.ts";
import { asksForNewProtocol, type Plan, planAfter, webSocketPathOf } from "../../sessions/plan.ts";
import {
  type ResumableUpgradeOptions,
  requestResumableUpgrade,
} from "../../sessions/resumption/resumable-upgrade.ts";
import type { KubeletRequest } from "./kubelet-request.ts";
import type { PreparedStreaming } from "./prepare-streaming.ts";

/**
 * Asks the node for the session.
 *
 * Throws a StatusError with kube-apiserver's texts when the node cannot be reached or answers nonsense, 503 at once when it is known
 * to be dead, and UpstreamError "aborted" when the client left meanwhile.
 */
export async function dialNode(
  { target, request, plan }: PreparedStreaming,
  kubeletRequest: KubeletRequest,
  signal: AbortSignal,
  gateway: GatewayContext,
): Promise<UpgradeResponse> {
  const endpoint = await endpointOf(target.node, gateway.kubelet);
  const ticket = gateway.nodes.admit(target.node);
  try {
    const connect = gateway.kubelet.connect?.bind(undefined, endpoint);
    const response = await requestFromNode(target.node.name, plan, gateway, (resume) =>
      requestSession(endpoint, kubeletRequest, signal, gateway, connect, resume),
    );
    ticket.answered();
    return response;
  } catch (error) {
    settle(ticket, error);
    if (!(error instanceof UpstreamError) || error.code === "aborted") throw error;
    const failure = unansweredPath(error);
    if (failure !== undefined && planAfter(plan, request.subresource) !== undefined) {
      gateway.nodes.recordFailure(target.node, webSocketPathOf(request.subresource), failure);
    }
    throw dialingError(error);
  }
}

/** Where the node is a Sluice that agrees, and there is room, the session survives lost connections to it (protocols/resume). */
async function requestFromNode(
  node: string,
  plan: Plan,
  { clock, logger, resumable }: GatewayContext,
  request: (resume?: ResumableUpgradeOptions) => Promise<UpgradeResponse>,
): Promise<UpgradeResponse> {
  const settle = asksForNewProtocol(plan) ? resumable?.admitUpstream() : undefined;
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
 * Asks whoever is there for the session. A 101 that does not switch to what was asked is refused here: a raw pipe is only ever
 * laid behind a validated 101 (CVE-2018-1002105); where the WebSocket is our own, its whole handshake is judged. `connect`: how, where
 * that is not directly. `resume`: a WebSocket shall survive lost connections where the other side is a Sluice that agrees. Throws
 * UpstreamError.
 */
export async function requestSession(
  endpoint: UpstreamEndpoint,
  { method, path, headers, upgrade, webSocket }: KubeletRequest,
  signal: AbortSignal,
  { limits, timeouts }: Pick<GatewayContext, "limits" | "timeouts">,
  connect?: UpgradeRequest["connect"],
  resume?: ResumableUpgradeOptions,
): Promise<UpgradeResponse> {
  const request: UpgradeRequest = {
    endpoint,
    method,
    path,
    headers,
    signal,
    connect,
    dialTimeoutMs: timeouts.dialMs,
    responseHeaderTimeoutMs: timeouts.upgradeResponseMs,
    maxResponseHeadBytes: limits.maxUpgradeResponseHeadBytes,
  };
  const response =
    resume === undefined || upgrade !== "websocket"
      ? await requestUpgrade(request)
      : await requestResumableUpgrade(request, resume);
  if (response.kind === "switched" && !isSwitchedTo(response, upgrade)) {
    response.socket.destroy();
    throw new UpstreamError("upgrade-mismatch", "unable to upgrade: missing upgrade headers in response");
  }
  if (response.kind === "switched" && webSocket !== undefined) {
    const handshake = checkWebSocketAnswer(response, webSocket);
    if (!handshake.ok) {
      response.socket.destroy();
      throw new UpstreamError("upgrade-mismatch", `unable to upgrade: ${handshake.message}`);
    }
  }
  return response;
}

/** The failure in kube-apiserver's words; the kubelet has the same for its runtime. */
export function dialingError({ code, message }: UpstreamError): StatusError {
  return genericError(500, code === "dial-failed" ? `error dialing backend: ${message}` : message);
}

/** Who is not reached, or says nothing at all, is dead; who breaks off or says nonsense is there. */
function settle(ticket: DialTicket, error: unknown): void {
  if (!(error instanceof UpstreamError) || error.code === "aborted") ticket.abandoned();
  else if (error.code === "dial-failed" || error.code === "response-timeout") ticket.failed(error.message);
  else ticket.answered();
}

/** What an answer that never came, or was none, says of the path; undefined where it says nothing. */
function unansweredPath({ code, message }: UpstreamError): PathFailure | undefined {
  switch (code) {
    case "response-timeout":
      return "no-answer";
    case "closed-before-response":
      // A server that refuses our certificate says so only here, and refuses it on every path.
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

/** Throws a StatusError: kube-apiserver would fail to dial, too, what this refuses to. */
export async function endpointOf(node: NodeEndpoint, kubelet: KubeletOptions): Promise<UpstreamEndpoint> {
  try {
    return await kubelet.endpointOf(node);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw genericError(500, `error dialing backend: ${message}`);
  }
}

/** The SPDY protocol that the node chose, which must be one that it was offered. Throws a StatusError, as client-go words it. */
export function chosenStreamProtocol(response: SwitchedUpgrade, { headers }: KubeletRequest): string {
  const offered = headers.filter(([name]) => name === "X-Stream-Protocol-Version").map(([, value]) => value);
  const chosen = headerValue(response.rawHeaders, "x-stream-protocol-version")?.trim() ?? "";
  if (offered.includes(chosen)) return chosen;
  response.socket.destroy();
  throw genericError(
    500,
    `unable to negotiate protocol: client supports [${offered.join(" ")}], server returned ${JSON.stringify(chosen)}`,
  );
}

export type { RefusedUpgrade, SwitchedUpgrade };
