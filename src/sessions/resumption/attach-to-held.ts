import { flatHeaders, type HeaderLine } from "@sluice/client/internal/http/header-list";
import { acceptValueOf } from "@sluice/client/internal/http/upgrade/websocket-request";
import { encodeResumed, RESUME_HEADER, RESUME_PROTOCOL, type Resumption } from "@sluice/protocols/resume";
import { checkServerHandshake } from "@sluice/protocols/websocket";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { answerSwitched, switchedStatusOf } from "../../http/upgrade/answer-switched.ts";
import { withReusedReads } from "../../net/accepted-socket.ts";
import { HandshakeRefusal } from "../client-handshake.ts";
import type { ResumptionContext } from "../context.ts";
import type { IncomingStreaming } from "../incoming-request.ts";
import type { PendingClient } from "../pending-client.ts";

/** A resumption, received by this process or proxied by another one. */
export type ResumedRequest = Pick<IncomingStreaming, "method" | "headers" | "url" | "trail">;

/**
 * Resumes a session of this process. If it still has a connection, drops it, since the client knows
 * the newer one. Throws StatusError (see `ResumableSessions.claim`) and HandshakeRefusal.
 */
export function attachToHeld(
  resumption: Resumption,
  user: UserInfo,
  { method, headers, url, trail }: ResumedRequest,
  client: PendingClient,
  { resumable }: ResumptionContext,
): void {
  const key = webSocketKeyOf({ method, headers });
  if (resumable === undefined) throw WIRE_ERRORS["resumption-off"].streaming();
  const socket = resumable.claim(resumption, user, url.pathname);
  // Ignores the old connection from here on, so that the offset in the answer is still right when the
  // client reads it.
  socket.detach();
  const lines: HeaderLine[] = [
    ["Upgrade", "websocket"],
    ["Connection", "Upgrade"],
    ["Sec-WebSocket-Accept", acceptValueOf(key)],
    ["Sec-WebSocket-Protocol", RESUME_PROTOCOL],
    [RESUME_HEADER, encodeResumed(socket.received)],
  ];
  const leg = withReusedReads(client.release());
  answerSwitched(leg.socket, lines);
  socket.attach(leg, resumption.received);
  resumable.resumed(user, url.pathname);
  trail?.complete({ code: switchedStatusOf(leg.socket) });
}

/** Throws HandshakeRefusal if the request is not a WebSocket handshake. */
export function webSocketKeyOf({ method, headers }: Pick<IncomingStreaming, "method" | "headers">): string {
  const handshake = checkServerHandshake({ method, rawHeaders: flatHeaders(headers) });
  if (!handshake.ok) throw new HandshakeRefusal(handshake.status, handshake.headers, handshake.body);
  return handshake.key;
}
