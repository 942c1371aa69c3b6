import { StatusError } from "@sluice/client/internal/api/status";
import {
  type Attributes,
  type Decision,
  requireCreatePermission,
  requirePermission,
} from "../../access/authz/authorizer.ts";
import { buildAuthorizer } from "../../access/authz/component.ts";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import type { UserInfo } from "../../access/user-info.ts";
import type { ClusterStore } from "../../cluster/cluster-store.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import type { FeatureGates } from "../../config/feature-gates.ts";
import { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";
import type { NodeCapability } from "../../nodes/node-capability.ts";
import type { ClientOffer } from "../../sessions/client-offer.ts";
import { type AdmissionReason, PLAN_REASONS, planFor, planThroughApiServer } from "../../sessions/plan.ts";
import type { Subresource } from "../../sessions/streaming-request.ts";
import { shellWord } from "../print-text.ts";

/** The authorizers' verdict on one transport. */
interface TransportVerdict {
  readonly transport: Transport;
  /** The refusal in the gateway's words; undefined if the transport is allowed. */
  readonly refusal: StatusError | undefined;
}

export type Transport = "WebSocket" | "SPDY";

type AuthorizationVerdict =
  /** The roles are in the cluster: `text` shows how to ask it. */
  | { readonly type: "elsewhere"; readonly text: string }
  | {
      readonly type: "evaluated";
      readonly transports: readonly TransportVerdict[];
      /** Why one is allowed. */
      readonly reason: string;
    };

/** A WebSocket handshake is a GET; kubectl opens SPDY by POST. */
const METHODS: readonly [Transport, method: string][] = [
  ["WebSocket", "GET"],
  ["SPDY", "POST"],
];

/** Whether the configured authorizers let the user open the session, for each transport. */
export async function explainAuthorization(
  { authorization, cluster, featureGates }: GatewayConfiguration,
  store: ClusterStore,
  user: UserInfo,
  { namespace, pod, subresource }: { namespace: string; pod: string; subresource: Subresource },
): Promise<AuthorizationVerdict> {
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/${subresource}`;
  const isGateOn = featureGates.isEnabled("AuthorizePodWebsocketUpgradeCreatePermission");
  if (cluster.live !== undefined && authorization.modes.includes("RBAC"))
    return { type: "elsewhere", text: canILines(user, { namespace, pod, subresource }, isGateOn) };
  const upstreams = new UpstreamTlsFiles({ logger: SILENT });
  const built = await buildAuthorizer(authorization, store, SILENT, upstreams);
  let allowed: Decision | undefined;
  const asked = {
    async authorize(attributes: Attributes): Promise<Decision> {
      const decision = await built.authorizer.authorize(attributes);
      if (decision.decision === "allow") allowed ??= decision;
      return decision;
    },
  };
  try {
    const transports: TransportVerdict[] = [];
    for (const [transport, method] of METHODS) {
      const attributes = requestAttributes(user, { method, path, query: new URLSearchParams() });
      const refusal = await refusalOf(async () => {
        await requirePermission(asked, attributes);
        await requireCreatePermission(asked, attributes, isGateOn);
      });
      transports.push({ transport, refusal });
    }
    return { type: "evaluated", transports, reason: allowed?.reason || authorization.modes.join(", ") };
  } finally {
    await built.stop();
    upstreams.stop();
  }
}

async function refusalOf(check: () => Promise<void>): Promise<StatusError | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
}

/** kubectl commands that ask a cluster about its roles, to be typed into a shell. */
function canILines(
  { name, groups }: UserInfo,
  { namespace, pod, subresource }: { namespace: string; pod: string; subresource: Subresource },
  isGateOn: boolean,
): string {
  const as = [`--as=${name}`, ...groups.map((group) => `--as-group=${group}`)];
  const line = (verb: string): string =>
    ["kubectl", "auth", "can-i", verb, `pods/${pod}`, `--subresource=${subresource}`, "-n", namespace, ...as]
      .map(shellWord)
      .join(" ");
  return [
    "authorization: not evaluated here, for the cluster holds the roles",
    `  a WebSocket needs:${isGateOn ? " both" : ""}`,
    `    ${line("get")}`,
    ...(isGateOn ? [`    ${line("create")}`] : []),
    "  SPDY needs:",
    `    ${line("create")}`,
  ].join("\n");
}

const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => SILENT };

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
  /** Why the session goes through the API server. */
  readonly admission?: AdmissionReason | undefined;
  /** The transports that authorization refuses, if it does not refuse all. */
  readonly refused?: readonly Transport[];
}

const TRANSPORTS: Readonly<Record<string, Transport>> = { websocket: "WebSocket", spdy: "SPDY" };

/** One line for each kind of client: its name, the plan, and the reason. */
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
