import { StatusError } from "@sluice/client/internal/api/status";
import type { Decision } from "../../access/authz/authorizer.ts";
import { buildAuthorizer } from "../../access/authz/component.ts";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import { forbiddenTo } from "../../access/authz/require-permission.ts";
import type { UserInfo } from "../../access/user-info.ts";
import type { ClusterStore } from "../../cluster/cluster-store.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";
import type { Subresource } from "../../sessions/streaming-request.ts";

interface AuthorizationVerdict {
  /** The line to print. */
  readonly text: string;
  readonly isRefused: boolean;
}

/** `get` is a WebSocket's verb, `create` SPDY's; a WebSocket needs both unless the gate is off. */
const VERBS = [
  ["GET", "get"],
  ["POST", "create"],
] as const;

/** Whether the configured authorizers let the user open the session, in the gateway's words. */
export async function explainAuthorization(
  { authorization, cluster, featureGates }: GatewayConfiguration,
  store: ClusterStore,
  user: UserInfo,
  { namespace, pod, subresource }: { namespace: string; pod: string; subresource: Subresource },
): Promise<AuthorizationVerdict> {
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/${subresource}`;
  if (cluster.live !== undefined && authorization.modes.includes("RBAC")) {
    const groups = user.groups.map((group) => ` --as-group=${group}`).join("");
    const line = `kubectl auth can-i create pods/${subresource} -n ${namespace} --as=${user.name}${groups}`;
    return {
      text: `authorization: not evaluated here, for the cluster holds the roles: ${line}`,
      isRefused: false,
    };
  }
  const upstreams = new UpstreamTlsFiles({ logger: SILENT });
  const built = await buildAuthorizer(authorization, store, SILENT, upstreams);
  try {
    let allowed: Decision | undefined;
    for (const [method, verb] of VERBS) {
      const attributes = requestAttributes(user, { method, path, query: new URLSearchParams() });
      const isNeeded =
        verb === "get" || featureGates.isEnabled("AuthorizePodWebsocketUpgradeCreatePermission");
      if (!isNeeded) continue;
      const decision = await built.authorizer.authorize(attributes);
      if (decision.decision !== "allow") {
        const { code, message } = forbiddenTo(attributes, decision.reason);
        return { text: `refused with ${code}: ${message}`, isRefused: true };
      }
      allowed ??= decision;
    }
    return { text: `authorization: ${allowed?.reason || authorization.modes.join(", ")}`, isRefused: false };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { text: `refused with ${error.code}: ${error.message}`, isRefused: true };
  } finally {
    await built.stop();
    upstreams.stop();
  }
}

const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => SILENT };
