import type { UserInfo } from "../../access/authn/authenticator.ts";
import { badRequest } from "../../api/status.ts";
import { requireCarriableUpgrade } from "../../sessions/client-offer.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import type { PendingClient } from "../../sessions/pending-client.ts";
import { webSocketPathOf } from "../../sessions/plan.ts";
import { runSession } from "../../sessions/run-session.ts";
import { parseStreamingRequest, type StreamingPath } from "../../sessions/streaming-request.ts";
import type { PreparedStreaming } from "../api-server/prepare-streaming.ts";
import type { AgentContext } from "./agent-context.ts";
import { askApiServer } from "./ask-api-server.ts";
import { planForApiServer } from "./plan-session.ts";

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
  const ask = () => askApiServer(prepared, target, client.signal, agent);
  await runSession({ prepared, startedMs, ask }, client, agent);
}

function prepare(
  path: StreamingPath,
  user: UserInfo,
  incoming: IncomingStreaming,
  { upstream, nodes }: AgentContext,
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
  const { avoidedPaths } = nodes.capabilityOf(node);
  return {
    user,
    request,
    target: { namespace, pod, container, node },
    plan: planForApiServer(subresource, offer, avoidedPaths.includes(webSocketPathOf(subresource))),
    policy: { rule: undefined, reason: request.reason },
  };
}
