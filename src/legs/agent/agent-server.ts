import { requestAttributes } from "../../access/authz/request-attributes.ts";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { refuseUpgrade } from "../../listeners/answer.ts";
import { createListener, type Listener, type ListenerOptions } from "../../listeners/listener.ts";
import { writeStatus } from "../../listeners/write-answer.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import { runSession } from "../../sessions/run-session.ts";
import { matchStreamingPath } from "../../sessions/streaming-request.ts";
import type { AgentContext } from "./agent-context.ts";
import { agentLeg } from "./agent-leg.ts";
import { forwardOtherUpgrade, forwardRequest } from "./forward.ts";

/**
 * Creates the agent's listener, not yet listening. A client with the agent's token acts as the
 * kubeconfig's user.
 */
export function createAgentServer(agent: AgentContext, options: ListenerOptions): Listener {
  return createListener(
    agent,
    {
      async handleRequest(incoming, downstream) {
        await requireToken(incoming, agent);
        await forwardRequest(incoming, downstream, agent);
      },
      async handleUpgrade(incoming, client) {
        const user = await requireToken(incoming, agent);
        const path = matchStreamingPath(incoming.url.pathname);
        if (path === undefined) return await forwardOtherUpgrade(incoming, client, agent);
        await runSession(agentLeg(path, user, agent), incoming, client, agent);
      },
      refuse: (downstream, refusal) => writeStatus(downstream, refusal.status),
      refuseUpgrade,
      attributesOf: (user, { method, url }) =>
        requestAttributes(user, { method, path: url.pathname, query: url.searchParams }),
      isLongRunning: ({ pathname }) => matchStreamingPath(pathname) !== undefined,
    },
    options,
  );
}

/** Throws StatusError 401. */
async function requireToken(incoming: IncomingStreaming, agent: AgentContext): Promise<UserInfo> {
  const user = await agent.authenticator.authenticate(incoming);
  if (user !== undefined) return user;
  agent.note(`refused: ${incoming.method} without the agent's token from ${incoming.remoteAddress}`);
  throw WIRE_ERRORS.unauthenticated.streaming();
}
