import { tunnelOffers } from "../../protocols/portforward/index.ts";
import { isRemoteCommandVersion, type RemoteCommandVersion } from "../../protocols/remotecommand/index.ts";
import { genericError } from "../api/status.ts";
import { type HeaderList, headerValue } from "../http/header-list.ts";
import { chosenStreamProtocol, type SwitchedUpgrade } from "../legs/api-server/dial-node.ts";
import type { PreparedStreaming } from "../legs/api-server/prepare-streaming.ts";
import type { Leg } from "../net/leg.ts";
import { isRuntimeUnreached } from "../nodes/refused-path.ts";
import { startBridge } from "./bridge-proxy.ts";
import { ForwardEndObserver } from "./carriers/end-observer.ts";
import { FirstMessageObserver } from "./carriers/first-message-observer.ts";
import { PortGuard } from "./carriers/port-guard.ts";
import { Relay, type RelayGuards } from "./carriers/relay.ts";
import type { SessionContext, StreamingSession } from "./carriers/session.ts";
import { StatusGuard } from "./carriers/status-guard.ts";
import { Translator } from "./carriers/translator.ts";
import { Tunnel } from "./carriers/tunnel.ts";
import { WebSocketEndObserver } from "./carriers/websocket-end-observer.ts";
import type { SessionRunContext } from "./context.ts";
import type { UpstreamHandshake } from "./negotiate-upgrade.ts";
import { planAfter, webSocketPathOf } from "./plan.ts";

/** Both sides have agreed: answers the client's upgrade and carries the bytes, by the plan. */
export interface SessionProxy {
  /** The lines of the client's 101. */
  readonly headers: HeaderList;
  readonly statusMessage?: string;
  start(downstream: Leg, context: SessionContext): StreamingSession;
}

/** A node that switched. */
export type AgreedNode = UpstreamHandshake & { readonly response: SwitchedUpgrade };

/** Throws a StatusError, and closes the node's connection, when the node chose something that cannot be carried. */
export function sessionProxyFor(
  { prepared, handshake, kubeletRequest, response }: AgreedNode,
  gateway: SessionRunContext,
): SessionProxy {
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
        headers: switchingHeaders(response.rawHeaders),
        statusMessage: response.statusMessage,
        start: (downstream, context) =>
          new Relay(downstream, upstream, context, {
            ...endObserversFor(prepared, response, gateway),
            ports: portGuardFor(prepared, gateway),
            firstWord: firstWordWatchFor(prepared, gateway),
          }),
      };
    case "translate": {
      const upstreamVersion = chosenStreamProtocol(response, kubeletRequest) as RemoteCommandVersion;
      return {
        headers: handshake.switchTo("v5.channel.k8s.io"),
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
    case "bridge": {
      const { protocol } = handshake;
      return {
        headers: handshake.switchTo(protocol),
        start: (downstream, context) =>
          startBridge(
            { request: prepared.request, protocol, webSocketLimits, ports: portGuardFor(prepared, gateway) },
            downstream,
            upstream,
            context,
            limits,
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
        headers: handshake.switchTo(subprotocol),
        start: (downstream, context) =>
          new Tunnel(downstream, upstream, webSocketLimits, context, portGuardFor(prepared, gateway)),
      };
    }
  }
}

/**
 * What reads along to know how a session that passes through ends. Only SPDY commands have a last word put in: a WebSocket that breaks off is
 * an error to every client anyway.
 */
function endObserversFor(
  { request }: PreparedStreaming,
  { rawHeaders }: SwitchedUpgrade,
  { limits }: SessionRunContext,
): RelayGuards {
  if (request.offer.transport === "spdy") {
    if (request.subresource === "portforward") return { ends: new ForwardEndObserver() };
    const guard = new StatusGuard(headerValue(rawHeaders, "x-stream-protocol-version") ?? "", limits.spdy);
    return { ends: guard, status: guard };
  }
  const protocol = headerValue(rawHeaders, "sec-websocket-protocol") ?? "";
  if (request.subresource === "portforward") {
    return {
      ends: new WebSocketEndObserver(tunnelOffers([protocol]).length > 0 ? "tunnel" : "legacy-forward"),
    };
  }
  // Without a subprotocol the channels are those of v1.
  return { ends: new WebSocketEndObserver(isRemoteCommandVersion(protocol) ? protocol : "channel.k8s.io") };
}

/** A kubelet that took v5 has not yet reached its runtime: its first word tells (docs/node-capability.md). */
function firstWordWatchFor(
  { plan, request, target }: PreparedStreaming,
  { nodes, logger }: SessionRunContext,
): FirstMessageObserver | undefined {
  if (planAfter(plan, request.subresource) === undefined) return undefined;
  const path = webSocketPathOf(request.subresource);
  if (path === "tunnel") {
    // Here the kubelet asks its runtime first.
    nodes.recordSuccess(target.node, path);
    return undefined;
  }
  return new FirstMessageObserver((word) => {
    if (word.kind === "failure" && isRuntimeUnreached(word.text)) {
      nodes.recordFailure(target.node, path, "failed-after-upgrade");
      logger.warn(
        { node: target.node.name, subresource: request.subresource },
        "the node accepted WebSocket and could not carry it on",
      );
    } else {
      nodes.recordSuccess(target.node, path);
    }
  });
}

function portGuardFor({ policy }: PreparedStreaming, { limits }: SessionRunContext): PortGuard | undefined {
  return policy.portRefusal && new PortGuard(policy.portRefusal, limits.spdy);
}

const SWITCHING_HEADERS: ReadonlySet<string> = new Set([
  "connection",
  "upgrade",
  "sec-websocket-accept",
  "sec-websocket-protocol",
  "x-stream-protocol-version",
]);

/** Of a node's 101 the lines that the protocols need; a cookie or a policy of a node's would be the gateway's to a browser. */
function switchingHeaders(headers: HeaderList): HeaderList {
  return headers.filter(([name]) => SWITCHING_HEADERS.has(name.toLowerCase()));
}
