import type { FeatureGates } from "../../config/feature-gates.ts";
import type { NodeCapability } from "../../nodes/node-capability.ts";
import type { ClientOffer } from "../../sessions/client-offer.ts";
import { type AdmissionReason, PLAN_REASONS, planFor, planThroughApiServer } from "../../sessions/plan.ts";
import type { Subresource } from "../../sessions/streaming-request.ts";

/** The usual clients, with the protocols they offer. */
const commandClients: readonly [name: string, offer: ClientOffer][] = [
  ["kubectl 1.30 and newer (WebSocket v5)", { transport: "websocket", protocols: ["v5.channel.k8s.io"] }],
  ["kubectl 1.29 and older (SPDY/3.1)", { transport: "spdy", protocols: ["v4.channel.k8s.io"] }],
  ["other clients (WebSocket v4)", { transport: "websocket", protocols: ["v4.channel.k8s.io"] }],
];
const forwardClients: readonly [name: string, offer: ClientOffer][] = [
  [
    "kubectl 1.31 and newer (SPDY in WebSocket)",
    { transport: "websocket", protocols: ["SPDY/3.1+portforward.k8s.io"] },
  ],
  ["kubectl 1.30 and older (SPDY/3.1)", { transport: "spdy", protocols: ["portforward.k8s.io"] }],
  ["other clients (legacy WebSocket)", { transport: "websocket", protocols: ["v4.channel.k8s.io"] }],
];

/**
 * A line for each kind of client: its name, the plan, and the reason. `admission`: why the API
 * server carries it.
 */
export function explainClients(
  subresource: Subresource,
  node: NodeCapability,
  featureGates: FeatureGates,
  admission?: AdmissionReason,
): string {
  const gates = {
    TranslateStreamCloseWebsocketRequests: featureGates.isEnabled("TranslateStreamCloseWebsocketRequests"),
    PortForwardWebsockets: featureGates.isEnabled("PortForwardWebsockets"),
    ExtendWebSocketsToKubelet: featureGates.isEnabled("ExtendWebSocketsToKubelet"),
  };
  const clients = subresource === "portforward" ? forwardClients : commandClients;
  const lines = clients.map(([client, offer]) => {
    const plan = admission ? planThroughApiServer(admission) : planFor(subresource, offer, node, gates);
    return `  ${client.padEnd(44)}${plan.kind.padEnd(14)}${PLAN_REASONS[plan.reason]}\n`;
  });
  return lines.join("");
}
