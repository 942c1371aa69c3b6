import type { WebSocketConnection } from "@sluice/client/internal/sessions/websocket-connection";
import type { WebSocketLimits, WebSocketRole } from "@sluice/protocols/websocket";
import type { SessionLifecycle } from "../lifecycle.ts";

/** The options of a session's WebSocket, in which this process has the `role`. Only clients get unsolicited PONGs. */
export function webSocketOptions(
  role: WebSocketRole,
  limits: WebSocketLimits,
  { clock, timeouts }: Pick<SessionLifecycle, "clock" | "timeouts">,
): ConstructorParameters<typeof WebSocketConnection>[2] {
  return {
    role,
    limits,
    lingerTimes: timeouts,
    clock,
    pingIntervalMs: timeouts.webSocketPingMs,
    pongIntervalMs: role === "server" ? timeouts.unsolicitedPongMs : Number.POSITIVE_INFINITY,
  };
}
