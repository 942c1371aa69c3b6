import type { Duplex } from "node:stream";
import { defaultWebSocketLimits } from "../../protocols/websocket/index.ts";
import {
  WebSocketConnection,
  type WebSocketConnectionHandler,
} from "../sessions/carriers/websocket-connection.ts";
import type { ServingContext } from "./serving-context.ts";

/** A WebSocket as CRI servers serve it: without any PING or unsolicited PONG. */
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

export const CLOSE_NORMAL = 1000;
/** RFC 6455 section 7.4.1: the peer broke the rules of the subprotocol. */
export const CLOSE_PROTOCOL_ERROR = 1002;
