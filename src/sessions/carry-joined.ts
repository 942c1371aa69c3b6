import { flatHeaders, type HeaderList } from "@sluice/client/internal/http/header-list";
import { acceptValueOf } from "@sluice/client/internal/http/upgrade/websocket-request";
import type { RemoteCommandVersion } from "@sluice/protocols/remotecommand";
import { checkServerHandshake } from "@sluice/protocols/websocket";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { JoinedSession } from "./carriers/joined-session.ts";
import { HandshakeRefusal } from "./client-handshake.ts";
import type { SessionRunContext } from "./context.ts";
import type { Downstream, IncomingStreaming } from "./incoming-request.ts";
import { SessionLifecycle, type SessionOwner } from "./lifecycle.ts";
import type { Joinable } from "./session-joins.ts";

const VERSIONS: readonly RemoteCommandVersion[] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

/** A joiner's validated upgrade request: the version for it, and the headers of its 101. */
interface JoinHandshake {
  readonly version: RemoteCommandVersion;
  readonly headers: HeaderList;
}

/** Throws HandshakeRefusal. */
export function checkJoinHandshake({
  method,
  headers,
}: Pick<IncomingStreaming, "method" | "headers">): JoinHandshake {
  const handshake = checkServerHandshake({ method, rawHeaders: flatHeaders(headers) });
  if (!handshake.ok) throw new HandshakeRefusal(handshake.status, handshake.headers, handshake.body);
  const version = VERSIONS.find((each) => handshake.protocols.includes(each));
  if (version === undefined) {
    const { code, message } = WIRE_ERRORS["websocket-protocol-unknown"].streaming();
    throw new HandshakeRefusal(code, [], message);
  }
  const lines = [
    ["Upgrade", "websocket"],
    ["Connection", "Upgrade"],
    ["Sec-WebSocket-Accept", acceptValueOf(handshake.key)],
    ["Sec-WebSocket-Protocol", version],
  ] as const;
  return { version, headers: lines };
}

/** Answers the joiner and carries the join. `onLife`: called before it begins. */
export function carryJoined(
  client: Downstream,
  { version, headers }: JoinHandshake,
  session: Joinable,
  context: Pick<SessionRunContext, "clock" | "sessions" | "timeouts" | "bandwidth" | "limits">,
  { onLife, ...owner }: SessionOwner & { onLife(life: SessionLifecycle): void },
): void {
  const { maxWebSocketFrameBytes: maxFrameBytes, maxWebSocketFragments: maxFragments } = context.limits;
  const webSocketLimits = { maxFrameBytes, maxMessageBytes: Number.POSITIVE_INFINITY, maxFragments };
  client.accept({ headers }, (connection) => {
    const life = new SessionLifecycle(context, context.timeouts, owner);
    onLife(life);
    const options = { version, webSocketLimits };
    life.carry([connection.socket], () => new JoinedSession(connection, session, options, life));
  });
}
