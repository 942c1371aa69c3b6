import { tunnelOffers } from "../../protocols/portforward/index.ts";
import type { RemoteCommandVersion } from "../../protocols/remotecommand/index.ts";
import { genericError } from "../api/status.ts";
import type { Leg } from "../streaming/leg.ts";
import { PortGuard } from "../streaming/port-guard.ts";
import { Relay } from "../streaming/relay.ts";
import type { SessionContext, StreamingSession } from "../streaming/session.ts";
import { StatusGuard } from "../streaming/status-guard.ts";
import { Translator } from "../streaming/translator.ts";
import { Tunnel } from "../streaming/tunnel.ts";
import { headerValue } from "../upstream/header-list.ts";
import { encodeResponseHead } from "./answer.ts";
import type { ClientHandshake } from "./client-handshake.ts";
import type { GatewayContext } from "./context.ts";
import { chosenStreamProtocol, type SwitchedUpgrade } from "./dial-node.ts";
import type { KubeletRequest } from "./kubelet-request.ts";
import type { PreparedStreaming } from "./prepare-streaming.ts";

/** Both sides have agreed: answers the client's upgrade and carries the bytes, by the plan. */
export interface Carrier {
  /** The client's 101, head only. */
  readonly head: Uint8Array;
  start(downstream: Leg, context: SessionContext): StreamingSession;
}

/** Throws a StatusError, and closes the node's connection, when the node chose something that cannot be carried. */
export function carrierFor(
  prepared: PreparedStreaming,
  handshake: ClientHandshake,
  kubeletRequest: KubeletRequest,
  response: SwitchedUpgrade,
  gateway: GatewayContext,
): Carrier {
  const { limits } = gateway;
  const upstream: Leg = { socket: response.socket, head: response.head };
  const webSocketLimits = {
    maxFrameBytes: limits.maxWebSocketFrameBytes,
    maxMessageBytes: Number.POSITIVE_INFINITY,
    maxFragments: limits.maxWebSocketFragments,
  };
  const { kind } = prepared.plan;
  switch (kind) {
    case "pass-through":
      return {
        head: Buffer.from(encodeResponseHead(101, response.rawHeaders, response.statusMessage), "latin1"),
        start: (downstream, context) =>
          new Relay(downstream, upstream, context, {
            status: guardFor(prepared, response, gateway),
            ports: portGuardFor(prepared, gateway),
          }),
      };
    case "translate": {
      const upstreamVersion = chosenStreamProtocol(response, kubeletRequest) as RemoteCommandVersion;
      return {
        head: handshake.switchTo("v5.channel.k8s.io"),
        start: (downstream, context) =>
          new Translator(
            downstream,
            upstream,
            {
              requested: prepared.request.streams,
              upstreamVersion,
              webSocketLimits,
              spdyLimits: limits.spdy,
              maxQueuedBytes: limits.stalledPeerBufferBytes,
            },
            context,
          ),
      };
    }
    case "tunnel": {
      const chosen = chosenStreamProtocol(response, kubeletRequest);
      const { offer } = prepared.request;
      const offers = offer.transport === "websocket" ? tunnelOffers(offer.protocols) : [];
      const subprotocol = offers.find(({ spdyProtocol }) => spdyProtocol === chosen)?.subprotocol;
      if (subprotocol === undefined) {
        response.socket.destroy();
        throw genericError(500, "unable to negotiate protocol");
      }
      return {
        head: handshake.switchTo(subprotocol),
        start: (downstream, context) =>
          new Tunnel(downstream, upstream, webSocketLimits, context, portGuardFor(prepared, gateway)),
      };
    }
  }
}

/** Only SPDY exec and attach end in a status; a WebSocket that breaks off is an error to every client anyway. */
function guardFor(
  { request }: PreparedStreaming,
  response: SwitchedUpgrade,
  { limits }: GatewayContext,
): StatusGuard | undefined {
  if (request.offer.transport !== "spdy" || request.subresource === "portforward") return undefined;
  return new StatusGuard(headerValue(response.rawHeaders, "x-stream-protocol-version") ?? "", limits.spdy);
}

function portGuardFor({ policy }: PreparedStreaming, { limits }: GatewayContext): PortGuard | undefined {
  return policy.portRefusal && new PortGuard(policy.portRefusal, limits.spdy);
}
