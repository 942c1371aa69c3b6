import { isShippedTunnelName, tunnelOffers } from "@sluice/protocols/portforward";
import type { NodeCapability, WebSocketPath } from "../nodes/node-capability.ts";
import type { CountedAs } from "../observability/streaming-labels.ts";
import type { ClientOffer } from "./client-offer.ts";
import type { Subresource } from "./streaming-request.ts";

/** The feature gates that affect plans, as booleans, so that planning stays a pure function. */
export interface PlanGates {
  readonly TranslateStreamCloseWebsocketRequests: boolean;
  readonly PortForwardWebsockets: boolean;
  readonly ExtendWebSocketsToKubelet: boolean;
}

/** How a session's bytes travel. Code reads the fields; the reason is for logs and `explain`. */
export interface Plan {
  readonly kind: "pass-through" | "translate" | "tunnel" | "bridge";
  /**
   * The upstream that the session is requested from. "websocket-hop": one that only WebSocket
   * reaches.
   */
  readonly path: "node" | "websocket-hop" | "runtime" | "api-server";
  /**
   * True if Sluice requests v5 or the tunnel, which the upstream may make resumable. Older
   * protocols and unknown ones pass unchanged.
   */
  readonly offersNewProtocol: boolean;
  /** Whose wording a command's final Status has: the upstream's, or the kubelet's for a bare runtime. */
  readonly statusStyle: "upstream" | "kubelet";
  readonly countedAs: CountedAs;
  /** `sluice explain`, logs, lists and audit events print it. */
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

/** A plan with the fields that most plans share. */
export function makePlan(
  kind: Plan["kind"],
  reason: PlanReason,
  fields: Partial<Omit<Plan, "kind" | "reason">> = {},
): Plan {
  return {
    kind,
    path: "node",
    offersNewProtocol: false,
    statusStyle: "upstream",
    countedAs: "other",
    ...fields,
    reason,
  };
}

/** The API server supports every client protocol, so the client's own passes through. Pure. */
export function planThroughApiServer(reason: AdmissionReason): Plan {
  return makePlan("pass-through", reason, { path: "api-server" });
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
  if (offer.transport !== "websocket") return makePlan("pass-through", "client-speaks-spdy");
  if (!hasNewProtocol(subresource, offer.protocols)) return makePlan("pass-through", "runtime-speaks-it");

  const isGateOn =
    subresource === "portforward" ? gates.PortForwardWebsockets : gates.TranslateStreamCloseWebsocketRequests;
  if (!isGateOn) return makePlan("pass-through", "gate-off", { countedAs: "gated" });
  if (!gates.ExtendWebSocketsToKubelet) return overSpdy(subresource, "node-speaks-spdy-only");
  if (node.mode === "spdy") return overSpdy(subresource, "node-held-to-spdy");
  if (node.mode === "auto" && !node.declaresWebSocket) return overSpdy(subresource, "node-speaks-spdy-only");
  if (!isKnownToNodes(subresource, offer.protocols)) return overSpdy(subresource, "node-knows-other-name");
  if (node.avoidedPaths.includes(webSocketPathOf(subresource))) {
    return overSpdy(subresource, "node-failed-at-websocket");
  }
  const reason = node.mode === "websocket" ? "node-held-to-websocket" : "node-speaks-websocket";
  return makePlan("pass-through", reason, { offersNewProtocol: true, countedAs: "new-protocol" });
}

/** The next plan if the node refuses `plan` because of its protocol; undefined if there is none. Pure. */
export function planAfter({ path, offersNewProtocol }: Plan, subresource: Subresource): Plan | undefined {
  return path === "node" && offersNewProtocol ? overSpdy(subresource, "node-failed-at-websocket") : undefined;
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
  const path = "runtime";
  if (offer.transport !== "websocket") return makePlan("pass-through", "client-speaks-spdy", { path });
  if (!hasNewProtocol(subresource, offer.protocols))
    return makePlan("pass-through", "runtime-speaks-it", { path });
  if (!gates.ExtendWebSocketsToKubelet)
    return makePlan("pass-through", "gate-off", { path, countedAs: "gated" });
  // A node's clients are API servers and kubectl, which know the kubelet's wording.
  return { ...overSpdy(subresource, "runtime-speaks-spdy"), path, statusStyle: "kubelet" };
}

/**
 * Plans for an upstream behind an L7 hop that refuses SPDY: only WebSocket v5 and the tunnel reach it,
 * whatever the gates say. Pure.
 */
export function planForWebSocketOnly(subresource: Subresource, offer: ClientOffer): Plan {
  const fields = { path: "websocket-hop", offersNewProtocol: true } as const;
  if (offer.transport !== "websocket") return makePlan("bridge", "spdy-over-websocket-hop", fields);
  if (!hasNewProtocol(subresource, offer.protocols))
    return makePlan("bridge", "older-websocket-over-hop", fields);
  const counted = { ...fields, countedAs: "new-protocol" } as const;
  return isKnownToNodes(subresource, offer.protocols)
    ? makePlan("pass-through", "only-websocket-passes", counted)
    : makePlan("bridge", "node-knows-other-name", counted);
}

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
  const kind = subresource === "portforward" ? "tunnel" : "translate";
  return makePlan(kind, reason, { countedAs: "new-protocol" });
}
