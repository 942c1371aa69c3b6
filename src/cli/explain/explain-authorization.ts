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
import { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";
import type { Subresource } from "../../sessions/streaming-request.ts";
import { shellWord } from "../print-text.ts";

/** What the authorizers say to one transport. */
interface TransportVerdict {
  readonly transport: Transport;
  /** In the gateway's words; undefined if it is allowed. */
  readonly refusal: StatusError | undefined;
}

export type Transport = "WebSocket" | "SPDY";

export type AuthorizationVerdict =
  /** The cluster holds the roles: `text` says how to ask it. */
  | { readonly type: "elsewhere"; readonly text: string }
  | {
      readonly type: "evaluated";
      readonly transports: readonly TransportVerdict[];
      /** Why one is allowed. */
      readonly reason: string;
    };

/** WebSocket handshakes are GETs, and kubectl opens SPDY by POST. */
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

/** kubectl's questions about the roles of a cluster, to be typed into a shell. */
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
