import type { Duplex } from "node:stream";
import {
  WebSocketConnection,
  type WebSocketConnectionHandler,
} from "@sluice/client/internal/sessions/websocket-connection";
import { defaultWebSocketLimits } from "@sluice/protocols/websocket";
import type { ServingContext } from "./serving-context.ts";

/** A WebSocket like a CRI server's: it sends no PING and no unsolicited PONG. */
export function openWebSocket(
  socket: Duplex,
  handler: WebSocketConnectionHandler,
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
