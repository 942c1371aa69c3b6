import type { UserInfo } from "../access/authn/authenticator.ts";
import { badRequest } from "../api/status.ts";
import type { AskedNode } from "../gateway/ask-node.ts";
import { checkClientHandshake } from "../gateway/client-handshake.ts";
import type { IncomingStreaming } from "../gateway/incoming-request.ts";
import { kubeletRequestFor } from "../gateway/kubelet-request.ts";
import type { PendingClient } from "../gateway/pending-client.ts";
import { type Plan, planForRuntime } from "../gateway/plan.ts";
import { type PreparedStreaming, requireCarriableUpgrade } from "../gateway/prepare-streaming.ts";
import { runSession } from "../gateway/run-session.ts";
import { parseStreamingRequest, type StreamingPath } from "../gateway/streaming-request.ts";
import type { AgentContext } from "./agent-context.ts";
import { dialUpstream } from "./dial-upstream.ts";
import { unansweredError } from "./forward.ts";

/**
 * An exec, attach or port-forward: planned here, then run-session.ts with the API server in the place of a node. Nothing is decided about the
 * user: the API server does, by the user's own credentials. Any step may refuse it by throwing a StatusError.
 */
export async function serveSession(
  path: StreamingPath,
  target: string,
  user: UserInfo,
  incoming: IncomingStreaming,
  client: PendingClient,
  agent: AgentContext,
): Promise<void> {
  const startedMs = agent.clock.now();
  const prepared = prepare(path, user, incoming, agent);
  const ask = () => askUpstream(prepared, target, client.signal, agent);
  await runSession({ prepared, startedMs, ask }, client, agent);
}

function prepare(
  path: StreamingPath,
  user: UserInfo,
  incoming: IncomingStreaming,
  { upstream }: AgentContext,
): PreparedStreaming {
  const request = parseStreamingRequest(path, incoming);
  if (request.offer.transport === "none") throw badRequest("Upgrade request required");
  requireCarriableUpgrade(request);
  const { namespace, pod, container, subresource, offer } = request;
  // The one node that the agent knows is the API server.
  const node = {
    name: upstream.authority,
    host: "",
    port: 0,
    declaredFeatures: [],
    streaming: undefined,
    incarnation: "",
  };
  return {
    user,
    request,
    target: { namespace, pod, container, node },
    plan: planForRuntime(subresource, offer, { ExtendWebSocketsToKubelet: false }),
    policy: { rule: undefined, reason: request.reason },
  };
}

async function askUpstream(
  prepared: PreparedStreaming,
  target: string,
  signal: AbortSignal,
  agent: AgentContext,
): Promise<AskedNode> {
  try {
    return await attempt(prepared, prepared.plan, target, signal, agent);
  } catch (error) {
    throw unansweredError(error);
  }
}

async function attempt(
  { plan: _, ...rest }: PreparedStreaming,
  plan: Plan,
  target: string,
  signal: AbortSignal,
  agent: AgentContext,
): Promise<AskedNode> {
  const prepared = { ...rest, plan };
  const handshake = checkClientHandshake(prepared);
  const kubeletRequest = kubeletRequestFor(prepared.request, target, plan);
  const response = await dialUpstream(prepared.request.headers, kubeletRequest, signal, agent);
  return { prepared, handshake, kubeletRequest, response };
}
