import {
  encodeResumed,
  RESUME_HEADER,
  RESUME_PROTOCOL,
  type Resumption,
} from "../../protocols/resume/index.ts";
import { checkServerHandshake } from "../../protocols/websocket/index.ts";
import type { UserInfo } from "../access/authn/authenticator.ts";
import { resourceExpired } from "../api/status.ts";
import { withReusedReads } from "../streaming/accepted-socket.ts";
import { answerSwitched, switchedStatusOf } from "../upstream/answer-switched.ts";
import { flatHeaders, type HeaderLine } from "../upstream/header-list.ts";
import { acceptValueOf } from "../upstream/websocket-request.ts";
import { HandshakeRefusal } from "./client-handshake.ts";
import type { GatewayContext } from "./context.ts";
import type { IncomingStreaming } from "./incoming-request.ts";
import type { PendingClient } from "./pending-client.ts";
import type { DecidedOn } from "./resumable-sessions.ts";

/**
 * Goes on with a session over the connection of this request, whose user has been authenticated and may open sessions at this path. A
 * connection that the session seems to have is let go: of two, the client knows of the newer one.
 *
 * `checkAgain`: what else was decided when the session began, and may be decided otherwise for this user now. Throws StatusError (see
 * `ResumableSessions.claim`) and HandshakeRefusal.
 */
export function resumeSession(
  resumption: Resumption,
  user: UserInfo,
  incoming: IncomingStreaming,
  client: PendingClient,
  { resumable }: Pick<GatewayContext, "resumable">,
  checkAgain: (prepared: DecidedOn) => void = () => {},
): void {
  const { method, headers, url, trail } = incoming;
  const handshake = checkServerHandshake({ method, rawHeaders: flatHeaders(headers) });
  if (!handshake.ok) throw new HandshakeRefusal(handshake.status, handshake.headers, handshake.body);
  if (resumable === undefined) throw resourceExpired("sessions are not resumed here");
  const { socket, prepared } = resumable.claim(resumption, user, url.pathname);
  checkAgain(prepared);
  // From here on nothing of the old connection counts, so that the answer is still true when the client has it.
  socket.detach();
  const lines: HeaderLine[] = [
    ["Upgrade", "websocket"],
    ["Connection", "Upgrade"],
    ["Sec-WebSocket-Accept", acceptValueOf(handshake.key)],
    ["Sec-WebSocket-Protocol", RESUME_PROTOCOL],
    [RESUME_HEADER, encodeResumed(socket.received)],
  ];
  const leg = withReusedReads(client.release());
  answerSwitched(leg.socket, lines);
  socket.attach(leg, resumption.received);
  resumable.resumed(user, url.pathname);
  trail?.complete({ code: switchedStatusOf(leg.socket) });
}
