import type { FeatureGates } from "../../config/feature-gates.ts";
import type { NodeCapability } from "../../nodes/node-capability.ts";
import type { ClientOffer } from "../../sessions/client-offer.ts";
import { type AdmissionReason, PLAN_REASONS, planFor, planThroughApiServer } from "../../sessions/plan.ts";
import type { Subresource } from "../../sessions/streaming-request.ts";
import type { Transport } from "./explain-authorization.ts";

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

interface Circumstances {
  /** Why the API server carries it. */
  readonly admission?: AdmissionReason | undefined;
  /** Those that authorization refuses, if not all. */
  readonly refused?: readonly Transport[];
}

const TRANSPORTS: Readonly<Record<string, Transport>> = { websocket: "WebSocket", spdy: "SPDY" };

/** A line for each kind of client: its name, the plan, and the reason. */
export function explainClients(
  subresource: Subresource,
  node: NodeCapability,
  featureGates: FeatureGates,
  { admission, refused = [] }: Circumstances = {},
): string {
  const gates = {
    TranslateStreamCloseWebsocketRequests: featureGates.isEnabled("TranslateStreamCloseWebsocketRequests"),
    PortForwardWebsockets: featureGates.isEnabled("PortForwardWebsockets"),
    ExtendWebSocketsToKubelet: featureGates.isEnabled("ExtendWebSocketsToKubelet"),
  };
  const clients = subresource === "portforward" ? forwardClients : commandClients;
  const lines = clients.map(([client, offer]) => {
    const transport = TRANSPORTS[offer.transport];
    if (transport !== undefined && refused.includes(transport)) {
      const goesOn = offer.transport === "websocket" && client.startsWith("kubectl");
      const text = `by authorization${goesOn ? "; kubectl then asks over SPDY" : ""}`;
      return `  ${client.padEnd(44)}${"refused".padEnd(14)}${text}\n`;
    }
    const plan = admission ? planThroughApiServer(admission) : planFor(subresource, offer, node, gates);
    return `  ${client.padEnd(44)}${plan.kind.padEnd(14)}${PLAN_REASONS[plan.reason]}\n`;
  });
  return lines.join("");
}
