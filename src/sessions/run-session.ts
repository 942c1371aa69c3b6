import type { AuditTrail } from "../access/audit/audit-trail.ts";
import { answerSwitched, switchedStatusOf } from "../http/answer-switched.ts";
import type { PreparedStreaming } from "../legs/api-server/prepare-streaming.ts";
import { withReusedReads } from "../net/accepted-socket.ts";
import { checkClientHandshake } from "./client-handshake.ts";
import type { SessionRunContext } from "./context.ts";
import type { UpstreamHandshake } from "./negotiate-upgrade.ts";
import { passRefusalOn } from "./node-refusal.ts";
import type { PendingClient } from "./pending-client.ts";
import type { Reauthorize } from "./resumption/resumable-sessions.ts";
import { sessionProxyFor } from "./session-proxy.ts";
import { SessionRecord } from "./session-record.ts";

/** A session that was decided on. */
export interface AdmittedSession {
  readonly prepared: PreparedStreaming;
  /** By the gateway's clock, when the request came. */
  readonly startedMs: number;
  readonly trail?: AuditTrail | undefined;
  /** Asks the upstream, when nothing on our side can refuse any more. */
  ask(): Promise<UpstreamHandshake>;
  /** What is decided anew when the session is resumed; absent: nothing. */
  readonly readmit?: Reauthorize | undefined;
}

/**
 * What follows the decision, in order: a place, the upstream's answer, the client's 101, the bytes. Any step may refuse it by
 * throwing a StatusError.
 *
 * The upstream is dialled before the client gets its 101: a refusal stays an HTTP answer, and kubectl falls back to SPDY as
 * it would without us. From the 101 on the session's own protocol tells how it ended.
 */
export async function runSession(
  { prepared, startedMs, trail, ask, readmit }: AdmittedSession,
  client: PendingClient,
  gateway: SessionRunContext,
): Promise<void> {
  const record = new SessionRecord(prepared, startedMs, gateway, trail);
  try {
    checkClientHandshake(prepared);
    await record.admit();
    const asked = await ask();
    record.planned(asked.prepared);
    const { response } = asked;
    if (response.kind === "refused") {
      record.refused(response.status);
      return await passRefusalOn(response, asked.prepared.plan, client, gateway.limits.maxRefusalBodyBytes);
    }
    const carrier = sessionProxyFor({ ...asked, response }, gateway);
    const resumption = gateway.resumable?.agree(asked.prepared, carrier.headers, readmit);
    const connection = withReusedReads(client.release());
    // The 101 and what the session says first leave in one write.
    connection.socket.cork();
    try {
      answerSwitched(connection.socket, resumption?.headers ?? carrier.headers, carrier.statusMessage);
      const downstream = resumption?.start(connection) ?? connection;
      const sockets = [downstream.socket, response.socket];
      record.start(switchedStatusOf(connection.socket), sockets, (context) =>
        carrier.start(downstream, context),
      );
    } finally {
      connection.socket.uncork();
    }
  } catch (error) {
    record.failed(error);
    throw error;
  }
}
