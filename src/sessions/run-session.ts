// src/sessions: a streaming session from its plan to its end: carriers, limits, observers, resumption

import { answerSwitched, switchedStatusOf } from "../http/upgrade/answer-switched.ts";
import { withReusedReads } from "../net/accepted-socket.ts";
import type { Admission } from "./admission.ts";
import { checkClientHandshake } from "./client-handshake.ts";
import type { SessionRunContext } from "./context.ts";
import { countingRefusals } from "./count-refusals.ts";
import type { IncomingStreaming } from "./incoming-request.ts";
import type { Leg } from "./leg.ts";
import { negotiateUpgrade } from "./negotiate-upgrade.ts";
import { passRefusalOn } from "./node-refusal.ts";
import type { PendingClient } from "./pending-client.ts";
import { resumptionIn } from "./resumable/resumable-sessions.ts";
import { resumeSession } from "./resumption/resume-session.ts";
import { type SessionProxy, sessionProxyFor } from "./session-proxy.ts";
import { SessionRecord } from "./session-record.ts";

/**
 * Runs a session on any leg. Each step refuses by StatusError or HandshakeRefusal. It dials the
 * upstream before it sends the 101, so that a refusal is an HTTP answer and kubectl falls back to
 * SPDY.
 */
export async function runSession<A extends Admission>(
  leg: Leg<A>,
  incoming: IncomingStreaming,
  client: PendingClient,
  gateway: SessionRunContext,
): Promise<void> {
  const resumption = leg.resumption && resumptionIn(incoming.headers);
  if (leg.resumption !== undefined && resumption !== undefined) {
    const user = await leg.resumption.authorize(incoming);
    return await resumeSession(resumption, user, incoming, client, gateway);
  }
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
    const proxy = sessionProxyFor({ ...upstream, response }, observers, gateway);
    answerAndCarry(leg, taken, proxy, client, record, gateway);
  } catch (error) {
    record.failed(error);
    throw error;
  }
}

/** Answers the client's upgrade and carries the session. The 101 and the first bytes leave in one write. */
function answerAndCarry<A extends Admission>(
  { resumption }: Leg<A>,
  admission: A,
  proxy: SessionProxy,
  client: PendingClient,
  record: SessionRecord,
  gateway: SessionRunContext,
): void {
  const resumable = gateway.resumable?.agree(admission, proxy.headers, (user) =>
    resumption?.reauthorize?.(admission, user),
  );
  const connection = withReusedReads(client.release());
  connection.socket.cork();
  try {
    answerSwitched(connection.socket, resumable?.headers ?? proxy.headers, proxy.statusMessage);
    const downstream = resumable?.start(connection) ?? connection;
    const sockets = [downstream.socket, proxy.upstream];
    record.start(switchedStatusOf(connection.socket), sockets, proxy.observers, (life) =>
      proxy.start(downstream, life),
    );
  } finally {
    connection.socket.uncork();
  }
}
