// src/sessions: a streaming session from its plan to its end: carriers, limits, observers,
// resumption

import type { RefusedUpgrade } from "@sluice/client/internal/http/upgrade/upgrade-request";
import { checkClientHandshake } from "./client-handshake.ts";
import type { SessionRunContext } from "./context.ts";
import { countingRefusals } from "./count-refusals.ts";
import type { Downstream, IncomingStreaming } from "./incoming-request.ts";
import type { Admission, Leg } from "./leg.ts";
import { negotiateUpgrade } from "./negotiate-upgrade.ts";
import { refusalErrorOf } from "./node-refusal.ts";
import type { Plan } from "./plan.ts";
import { sessionProxyFor } from "./session-proxy.ts";
import { SessionRecord } from "./session-record.ts";

/**
 * Runs a session on any leg. Each step refuses by StatusError or HandshakeRefusal. It dials the upstream
 * before it accepts the client, so that a refusal is an HTTP answer and kubectl falls back to SPDY.
 */
export async function runSession<A extends Admission>(
  leg: Leg<A>,
  incoming: IncomingStreaming,
  client: Downstream,
  gateway: SessionRunContext,
): Promise<void> {
  const startedMs = gateway.clock.now();
  incoming.trace?.rename(leg.path.subresource);
  const admission = await countingRefusals(leg.path, incoming, gateway, () => leg.admit(incoming));
  // From here on the session record logs the outcome.
  if (incoming.notes !== undefined) incoming.notes.isLogged = true;
  const record = new SessionRecord(admission, startedMs, gateway, incoming.trail);
  try {
    const handshake = checkClientHandshake(admission);
    await record.acquirePlace();
    await record.prepare(client.signal);
    const upstream = await negotiateUpgrade(leg, { admission, handshake }, client.signal);
    const { admission: taken, response } = upstream;
    record.planned(taken);
    if (response.kind === "refused") {
      record.refused(response.status);
      return await passRefusalOn(response, taken.plan, client, gateway.limits.maxRefusalBodyBytes);
    }
    const first = leg.switched?.(taken);
    const observers = first === undefined ? record.observers : [...record.observers, first];
    const proxy = sessionProxyFor({ ...upstream, response }, observers, gateway, (signal) =>
      // The request's trace has ended by then.
      leg.dial({ ...taken, trace: undefined }, signal),
    );
    record.agreed(proxy.headers);
    const downstream = leg.downstream?.(taken, client) ?? client;
    downstream.accept(proxy, (connection, status) => {
      const sockets = [connection.socket, proxy.upstream];
      record.start(status, sockets, proxy.observers, (life) => proxy.start(connection, life));
    });
  } catch (error) {
    record.failed(error);
    throw error;
  }
}

/**
 * Passes on a node's refusal (400 or above): unchanged for pass-through and tunnel, otherwise as a
 * Status, because client-go shows a Status' message but any other body raw.
 */
async function passRefusalOn(
  refused: RefusedUpgrade,
  plan: Plan,
  client: Downstream,
  maxBodyBytes: number,
): Promise<void> {
  if (plan.kind === "translate" || plan.kind === "bridge") throw await refusalErrorOf(refused, maxBodyBytes);
  await client.refuse(refused);
}
