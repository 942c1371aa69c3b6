import type { UpstreamTls } from "@sluice/client/internal/net/tls";
import type { Authorizer } from "../../access/authz/authorizer.ts";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { CriRuntime } from "../../cri/cri-runtime.ts";
import type { ServingContext } from "../../listeners/listener-context.ts";
import type { KubeletCounters } from "../../observability/kubelet-counters.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import { SessionStanding } from "../../sessions/reauthorizer.ts";
import {
  kubeletAttributes,
  requireCreateForUpgrade,
  requireNodePermission,
} from "./kubelet-authorization.ts";
import type { KubeletUpstream } from "./kubelet-upstream.ts";

/**
 * Authorizes the user before anything else; no impersonation. `opensSession` adds the synthetic `create`
 * check. Throws the kubelet's 401, 403 and 500, and 503 if its audit log fails.
 */
export async function admitCaller(
  incoming: IncomingStreaming,
  opensSession: boolean,
  { gateway, nodeName, requiresCreateForUpgrades }: NodeContext,
): Promise<UserInfo> {
  const user = await gateway.authenticator.authenticate(incoming);
  if (user === undefined) throw WIRE_ERRORS.unauthenticated.kubelet();
  if (incoming.notes !== undefined) incoming.notes.user = user.name;
  await incoming.trail?.received(user);
  await incoming.admit?.(`user ${user.name}`);
  const authorizer = incoming.trail?.watching(gateway.authorizer) ?? gateway.authorizer;
  const attributes = kubeletAttributes(user, nodeName, incoming.method, incoming.url.pathname);
  await requireNodePermission(authorizer, attributes);
  if (opensSession && requiresCreateForUpgrades) await requireCreateForUpgrade(authorizer, attributes);
  return user;
}

/**
 * The caller's standing while its session runs. Its credentials are a machine's, which replaces
 * them: their expiry ends no session.
 */
export function callerStanding(
  user: UserInfo,
  { method, url }: IncomingStreaming,
  { gateway, nodeName, requiresCreateForUpgrades }: NodeContext,
): SessionStanding {
  const require = async (current: UserInfo, authorizer: Pick<Authorizer, "authorize">): Promise<void> => {
    const attributes = kubeletAttributes(current, nodeName, method, url.pathname);
    await requireNodePermission(authorizer, attributes);
    if (requiresCreateForUpgrades) await requireCreateForUpgrade(authorizer, attributes);
  };
  return new SessionStanding(user, gateway.authorizer, require, { expires: false });
}

/** Everything the kubelet listener's request handling needs. */
export interface NodeContext {
  /** With the listener's own authenticator, authorizer, sessions and metrics. */
  readonly gateway: ServingContext;
  readonly runtime: CriRuntime;
  /** Permissions and session lists use this node name. */
  readonly nodeName: string;
  /** TLS settings for runtimes with a TLS streaming server. */
  readonly streamingTls: UpstreamTls;
  /** Whether a GET upgrade also needs `create` on nodes/proxy. */
  readonly requiresCreateForUpgrades: boolean;
  readonly counters: KubeletCounters;
  /**
   * The node's kubelet, which answers requests that Sluice does not; undefined: the runtime answers
   * what it can.
   */
  readonly upstream: KubeletUpstream | undefined;
}
