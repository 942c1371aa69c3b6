import { withReusedReads } from "../streaming/accepted-socket.ts";
import { askNode } from "./ask-node.ts";
import { carrierFor } from "./carry.ts";
import { checkClientHandshake } from "./client-handshake.ts";
import type { GatewayContext } from "./context.ts";
import type { IncomingStreaming } from "./incoming-request.ts";
import { passRefusalOn } from "./node-refusal.ts";
import type { PendingClient } from "./pending-client.ts";
import { prepareStreaming } from "./prepare-streaming.ts";
import { SessionRecord } from "./session-record.ts";
import type { StreamingPath } from "./streaming-request.ts";

/**
 * The whole life of a streaming request, in order. Any step may refuse it by throwing a StatusError, which server.ts
 * turns into an answer.
 *
 * The node is dialled before the client gets its 101: a refusal stays an HTTP answer, and kubectl falls back to SPDY as
 * it would without us. From the 101 on the session's own protocol tells how it ended.
 */
export async function handleStreaming(
  path: StreamingPath,
  incoming: IncomingStreaming,
  client: PendingClient,
  gateway: GatewayContext,
): Promise<void> {
  const startedMs = gateway.clock.now();
  const prepared = await prepareStreaming(path, incoming, gateway);
  const record = new SessionRecord(prepared, startedMs, gateway, incoming.trail);
  try {
    checkClientHandshake(prepared);
    record.admit();
    const asked = await askNode(prepared, client.signal, gateway);
    record.planned(asked.prepared);
    const { response } = asked;
    if (response.kind === "refused") {
      record.refused(response.status);
      return await passRefusalOn(response, asked.prepared.plan, client, gateway.limits.maxRefusalBodyBytes);
    }
    const carrier = carrierFor({ ...asked, response }, gateway);
    const downstream = withReusedReads(client.release());
    downstream.socket.write(carrier.head);
    record.start((context) => carrier.start(downstream, context));
  } catch (error) {
    record.failed(error);
    throw error;
  }
}
