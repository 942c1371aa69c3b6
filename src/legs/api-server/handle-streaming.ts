import type { GatewayContext } from "../../sessions/context.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import { negotiateUpgrade } from "../../sessions/negotiate-upgrade.ts";
import type { PendingClient } from "../../sessions/pending-client.ts";
import { type Reauthorize, resumptionIn } from "../../sessions/resumption/resumable-sessions.ts";
import { resumeSession } from "../../sessions/resumption/resume-session.ts";
import { runSession } from "../../sessions/run-session.ts";
import type { StreamingPath } from "../../sessions/streaming-request.ts";
import { applyPolicy } from "./apply-policy.ts";
import { admitUser, prepareStreaming } from "./prepare-streaming.ts";

/**
 * The whole life of a streaming request at the API-server leg: decide here, then run-session.ts. Any step may refuse it by throwing a
 * StatusError, which listener.ts turns into an answer. One that goes on with a session has been decided on before; who asks, and whether
 * they may, is asked again.
 */
export async function handleStreaming(
  path: StreamingPath,
  incoming: IncomingStreaming,
  client: PendingClient,
  gateway: GatewayContext,
): Promise<void> {
  const resumption = resumptionIn(incoming.headers);
  if (resumption !== undefined) {
    const { user, requireCreate } = await admitUser(path, incoming, gateway);
    await requireCreate();
    return resumeSession(resumption, user, incoming, client, gateway);
  }
  const startedMs = gateway.clock.now();
  const prepared = await prepareStreaming(path, incoming, gateway);
  const ask = () => negotiateUpgrade(prepared, client.signal, gateway);
  const readmit: Reauthorize = (user, { request, target, plan }) => {
    applyPolicy(user, request, target, plan, gateway);
  };
  // From here on the session's record logs how it goes.
  if (incoming.notes !== undefined) incoming.notes.isLogged = true;
  await runSession({ prepared, startedMs, trail: incoming.trail, ask, readmit }, client, gateway);
}
