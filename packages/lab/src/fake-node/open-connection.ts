import type { Duplex } from "node:stream";
import type { SessionClock } from "@sluice/client/internal/net/session-clock";
import { SpdyConnection } from "@sluice/client/internal/sessions/spdy-connection";
import { WebSocketConnection } from "@sluice/client/internal/sessions/websocket-connection";
import { ProtocolError } from "@sluice/protocols";
import type { ChannelDemux } from "@sluice/protocols/remotecommand";
import { defaultSpdyLimits } from "@sluice/protocols/spdy";
import { CLOSE, defaultWebSocketLimits } from "@sluice/protocols/websocket";
import type { FakeNodeLimits } from "./limits.ts";

/** A session that the node must be able to end. */
interface LiveSession {
  abort(): void | Promise<void>;
}

/** The parts of its node that a session uses. */
export interface ServingContext {
  readonly limits: FakeNodeLimits;
  readonly clock: SessionClock;
  /** A session adds itself at its start, and removes itself when nothing of it is left. */
  readonly sessions: Set<LiveSession>;
}

/** A WebSocket like a CRI server's: it sends no PING and no unsolicited PONG. */
export function openWebSocket(
  socket: Duplex,
  handler: ConstructorParameters<typeof WebSocketConnection>[1],
  context: ServingContext,
): WebSocketConnection {
  return new WebSocketConnection(socket, handler, {
    role: "server",
    limits: defaultWebSocketLimits,
    lingerTimes: context.limits,
    clock: context.clock,
    pingIntervalMs: Number.POSITIVE_INFINITY,
    pongIntervalMs: Number.POSITIVE_INFINITY,
  });
}

/** Takes a client's message apart; a malformed one closes the WebSocket, and the result is false. */
export function pushOrClose(
  channels: ChannelDemux,
  webSocket: WebSocketConnection,
  ...message: Parameters<ChannelDemux["push"]>
): boolean {
  try {
    channels.push(...message);
    return true;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    webSocket.close(CLOSE.PROTOCOL_ERROR, error.message);
    return false;
  }
}

/** A SPDY connection like a CRI server's: it never pings. */
export function openSpdy(
  socket: Duplex,
  handler: ConstructorParameters<typeof SpdyConnection>[1],
  { clock, limits }: ServingContext,
): SpdyConnection {
  return new SpdyConnection(socket, handler, {
    role: "server",
    limits: defaultSpdyLimits,
    lingerTimes: limits,
    clock,
    pingIntervalMs: 0,
    maxQueuedBytes: limits.maxQueuedBytes,
  });
}
