import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { tunnelOffers } from "@sluice/protocols/portforward";
import { isRemoteCommandVersion } from "@sluice/protocols/remotecommand";
import type { WebSocketLimits } from "@sluice/protocols/websocket";
import type { Limits } from "../config/sections/limits.ts";
import { READ_AHEAD_BYTES } from "../net/read-ahead.ts";
import { CommandBridge } from "./carriers/bridge/command-bridge.ts";
import type { CommandClient, CommandClientHandler } from "./carriers/bridge/command-client.ts";
import { ChannelCommandClient, SpdyCommandClient } from "./carriers/bridge/command-clients.ts";
import { LegacyForwardBridge } from "./carriers/bridge/legacy-forward-bridge.ts";
import { Tunnel } from "./carriers/tunnel.ts";
import type { SessionLifecycle } from "./lifecycle.ts";
import type { StreamingSession } from "./session.ts";
import type { StreamingRequest } from "./streaming-request.ts";

/** A client whose protocol ends at the gateway, and the parameters of its bridge. */
interface BridgedSession {
  readonly request: StreamingRequest;
  /** The protocol agreed with the client; "" for a WebSocket without a subprotocol. */
  readonly protocol: string;
  readonly webSocketLimits: WebSocketLimits;
}

/** Carries the session to an upstream that switched to WebSocket v5 or to the tunnel. */
export function startBridge(
  session: BridgedSession,
  downstream: UpgradedConnection,
  upstream: UpgradedConnection,
  life: SessionLifecycle,
  limits: Limits,
): StreamingSession {
  const { request, protocol, webSocketLimits } = session;
  const isSpdy = request.offer.transport === "spdy";
  if (request.subresource !== "portforward") {
    const { tty, stdout } = request.streams;
    return new CommandBridge(
      downstream,
      upstream,
      {
        webSocketLimits,
        hasTerminal: tty && stdout,
        isAttach: request.subresource === "attach",
        clientOf: (handler) => commandClient(session, downstream, handler, life, limits),
      },
      life,
    );
  }
  // Old and new tunnel differ only in name. After the handshakes the frames are the same.
  if (isSpdy || tunnelOffers([protocol]).length > 0) {
    const client = isSpdy ? "spdy" : "messages";
    const options = { client, node: "messages", webSocketLimits, spdyLimits: limits.spdy } as const;
    return new Tunnel(downstream, upstream, options, life);
  }
  const isBase64 = protocol === "v4.base64.channel.k8s.io";
  const options = { ports: request.ports, isBase64, webSocketLimits, spdyLimits: limits.spdy };
  return new LegacyForwardBridge(downstream, upstream, options, life);
}

function commandClient(
  { request, protocol, webSocketLimits }: BridgedSession,
  { socket }: UpgradedConnection,
  handler: CommandClientHandler,
  life: SessionLifecycle,
  limits: Limits,
): CommandClient {
  // Without a subprotocol the client speaks v1.
  const version = isRemoteCommandVersion(protocol) ? protocol : "channel.k8s.io";
  const options = { version, requested: request.streams };
  if (request.offer.transport !== "spdy") {
    return new ChannelCommandClient(socket, handler, { ...options, webSocketLimits }, life);
  }
  const { spdy: spdyLimits } = limits;
  const maxQueuedBytes = limits.stalledPeerBufferBytes + READ_AHEAD_BYTES;
  return new SpdyCommandClient(socket, handler, { ...options, spdyLimits, maxQueuedBytes }, life);
}
