import { isShippedTunnelName, tunnelOffers } from "@sluice/protocols/portforward";
import type { NodeCapability, WebSocketPath } from "../nodes/node-capability.ts";
import type { ClientOffer } from "./client-offer.ts";
import type { Subresource } from "./streaming-request.ts";

/** The feature gates that affect plans, as booleans, so that planning stays a pure function. */
export interface PlanGates {
  readonly TranslateStreamCloseWebsocketRequests: boolean;
  readonly PortForwardWebsockets: boolean;
  readonly ExtendWebSocketsToKubelet: boolean;
}

/** How a session's bytes travel, and why. `reason` is data: `sluice explain`, logs and tests print it. */
export interface Plan {
  readonly kind: "pass-through" | "translate" | "tunnel" | "bridge";
  readonly reason: PlanReason;
}

/** Every reason, with the sentence for `sluice explain`. */
export const PLAN_REASONS = {
  "node-speaks-websocket":
    "the node declares ExtendWebSocketsToKubelet, so the client's own protocol reaches it",
  "node-held-to-websocket": "the node is configured or annotated to get the client's own protocol",
  "node-speaks-spdy-only": "the node declares nothing, so WebSocket ends here and SPDY goes on",
  "runtime-speaks-spdy": "container runtimes speak SPDY, so WebSocket ends here and SPDY goes on",
  "node-held-to-spdy": "the node is configured or annotated to get SPDY, whatever it declares",
  "node-failed-at-websocket":
    "the node failed at the client's own protocol lately, so WebSocket ends here and SPDY goes on",
  "node-knows-other-name":
    "the client uses the KEP's name for the tunnel, which no node knows, so it ends here",
  "client-speaks-spdy": "the client speaks SPDY, as every node does",
  "runtime-speaks-it":
    "the client's older WebSocket protocol is one that container runtimes speak themselves",
  "only-websocket-passes":
    "nothing but WebSocket reaches the upstream, and the client speaks the form of it that does",
  "spdy-over-websocket-hop":
    "nothing but WebSocket reaches the upstream, so SPDY ends here and WebSocket v5, or the tunnel, goes on",
  "older-websocket-over-hop":
    "nothing but WebSocket v5 and the tunnel reaches the upstream, so the client's older protocol ends here and they go on",
  "upstream-refused-websocket":
    "the API server refused WebSocket v5, or the tunnel, so the client's own protocol goes on",
  "admission-judges-it":
    "admission of the cluster has a rule for this CONNECT, so the API server carries the session",
  "admission-unknown":
    "it is not known whether admission of the cluster has a rule for this CONNECT, so the API server carries the session",
  "admission-always": "cluster.admission is always, so the API server carries every session",
  "gate-off": "the feature gate for this path is off, so nothing is translated",
} as const;

type PlanReason = keyof typeof PLAN_REASONS;

/**
 * Why a session must pass through the API server, whose admission then decides
 * (docs/decisions/0044-admission-on-connect.md).
 */
export type AdmissionReason = Extract<PlanReason, `admission-${string}`>;

/** The API server supports every client protocol, so the client's own passes through. Pure. */
export function planThroughApiServer(reason: AdmissionReason): Plan {
  return { kind: "pass-through", reason };
}

export function isThroughApiServer({ reason }: Plan): boolean {
  return reason.startsWith("admission-");
}

/**
 * Pass-through of WebSocket commands and of tunnels fails independently: which of the two this
 * subresource uses.
 */
export function webSocketPathOf(subresource: Subresource): WebSocketPath {
  return subresource === "portforward" ? "tunnel" : "command";
}

/**
 * Plans a session from the client's offer, the node's known capabilities, and the gates. Pure. The
 * offer must be "websocket" or "spdy".
 */
export function planFor(
  subresource: Subresource,
  offer: ClientOffer,
  node: NodeCapability,
  gates: PlanGates,
): Plan {
  if (node.mode === "websocket-only") return planForWebSocketOnly(subresource, offer);
  if (offer.transport !== "websocket") return CLIENT_SPEAKS_SPDY;
  if (!hasNewProtocol(subresource, offer.protocols)) return RUNTIME_SPEAKS_IT;

  const isGateOn =
    subresource === "portforward" ? gates.PortForwardWebsockets : gates.TranslateStreamCloseWebsocketRequests;
  if (!isGateOn) return { kind: "pass-through", reason: "gate-off" };
  if (!gates.ExtendWebSocketsToKubelet) return overSpdy(subresource, "node-speaks-spdy-only");
  if (node.mode === "spdy") return overSpdy(subresource, "node-held-to-spdy");
  if (node.mode === "auto" && !node.declaresWebSocket) return overSpdy(subresource, "node-speaks-spdy-only");
  if (!isKnownToNodes(subresource, offer.protocols))
    return { kind: "tunnel", reason: "node-knows-other-name" };
  if (node.avoidedPaths.includes(webSocketPathOf(subresource))) {
    return overSpdy(subresource, "node-failed-at-websocket");
  }
  return {
    kind: "pass-through",
    reason: node.mode === "websocket" ? "node-held-to-websocket" : "node-speaks-websocket",
  };
}

/** The next plan if the node refuses `plan` because of its protocol; undefined if there is none. Pure. */
export function planAfter(plan: Plan, subresource: Subresource): Plan | undefined {
  const isTaken = plan.reason === "node-speaks-websocket" || plan.reason === "node-held-to-websocket";
  return isTaken ? overSpdy(subresource, "node-failed-at-websocket") : undefined;
}

/**
 * True if the plan requests v5 or the tunnel, which an upstream Sluice can make resumable. Older
 * protocols stay unchanged.
 */
export function asksForNewProtocol({ kind, reason }: Plan): boolean {
  return kind === "bridge" || (kind === "pass-through" && NEW_PROTOCOL_REASONS.includes(reason));
}

/**
 * Plans for a container runtime's streaming server, as the kubelet does: with its gate off, the
 * client's protocol reaches the runtime, which refuses the new ones. Pure.
 */
export function planForRuntime(
  subresource: Subresource,
  offer: ClientOffer,
  gates: Pick<PlanGates, "ExtendWebSocketsToKubelet">,
): Plan {
  if (offer.transport !== "websocket") return CLIENT_SPEAKS_SPDY;
  if (!hasNewProtocol(subresource, offer.protocols)) return RUNTIME_SPEAKS_IT;
  if (!gates.ExtendWebSocketsToKubelet) return { kind: "pass-through", reason: "gate-off" };
  return overSpdy(subresource, "runtime-speaks-spdy");
}

/**
 * Plans for an upstream behind an L7 hop that refuses SPDY: only WebSocket v5 and the tunnel reach it,
 * whatever the gates say. Pure.
 */
export function planForWebSocketOnly(subresource: Subresource, offer: ClientOffer): Plan {
  if (offer.transport !== "websocket") return { kind: "bridge", reason: "spdy-over-websocket-hop" };
  if (!hasNewProtocol(subresource, offer.protocols))
    return { kind: "bridge", reason: "older-websocket-over-hop" };
  return isKnownToNodes(subresource, offer.protocols)
    ? { kind: "pass-through", reason: "only-websocket-passes" }
    : { kind: "bridge", reason: "node-knows-other-name" };
}

const NEW_PROTOCOL_REASONS: readonly PlanReason[] = [
  "node-speaks-websocket",
  "node-held-to-websocket",
  "only-websocket-passes",
];
const CLIENT_SPEAKS_SPDY: Plan = { kind: "pass-through", reason: "client-speaks-spdy" };
const RUNTIME_SPEAKS_IT: Plan = { kind: "pass-through", reason: "runtime-speaks-it" };

/** The protocols of KEP-4006: WebSocket v5 for commands, the tunnel for port-forward. */
function hasNewProtocol(subresource: Subresource, protocols: readonly string[]): boolean {
  return subresource === "portforward"
    ? tunnelOffers(protocols).length > 0
    : protocols.includes("v5.channel.k8s.io");
}

/** True if the request offers a protocol of KEP-4006, whether or not the plan uses it. */
export function wantsNewProtocol(subresource: Subresource, offer: ClientOffer): boolean {
  return offer.transport === "websocket" && hasNewProtocol(subresource, offer.protocols);
}

/** KEP-4006 calls the tunnel v2.portforward.k8s.io, but kubelets know only the name that shipped. */
function isKnownToNodes(subresource: Subresource, protocols: readonly string[]): boolean {
  return subresource !== "portforward" || protocols.some(isShippedTunnelName);
}

function overSpdy(subresource: Subresource, reason: PlanReason): Plan {
  return { kind: subresource === "portforward" ? "tunnel" : "translate", reason };
}
