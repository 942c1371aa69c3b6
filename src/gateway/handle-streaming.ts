import { askNode } from "./ask-node.ts";
import type { GatewayContext } from "./context.ts";
import type { IncomingStreaming } from "./incoming-request.ts";
import type { PendingClient } from "./pending-client.ts";
import { prepareStreaming } from "./prepare-streaming.ts";
import { runSession } from "./run-session.ts";
import type { StreamingPath } from "./streaming-request.ts";

/**
 * The whole life of a streaming request at the API-server leg: decide here, then run-session.ts. Any step may refuse it by throwing a
 * StatusError, which listener.ts turns into an answer.
 */
export async function handleStreaming(
  path: StreamingPath,
  incoming: IncomingStreaming,
  client: PendingClient,
  gateway: GatewayContext,
): Promise<void> {
  const startedMs = gateway.clock.now();
  const prepared = await prepareStreaming(path, incoming, gateway);
  const ask = () => askNode(prepared, client.signal, gateway);
  await runSession({ prepared, startedMs, trail: incoming.trail, ask }, client, gateway);
}
