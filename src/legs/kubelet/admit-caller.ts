import type { UpstreamTls } from "@sluice/client/internal/net/tls";
import { type Attributes, type Authorizer, authorizerFor } from "../../access/authz/authorizer.ts";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { CriRuntime } from "../../cri/cri-runtime.ts";
import type { ServingContext } from "../../listeners/edge-rules.ts";
import type { KubeletCounters } from "../../observability/kubelet-counters.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import { SessionStanding } from "../../sessions/reauthorizer.ts";
import type { KubeletUpstream } from "./kubelet-upstream.ts";

const VERBS: Readonly<Record<string, string>> = { PUT: "update", PATCH: "patch", DELETE: "delete" };

/** Maps a path and everything below it to the subresource of nodes that guards it. */
const SUBRESOURCES: readonly (readonly [path: string, subresource: string])[] = [
  ["/stats", "stats"],
  ["/metrics", "metrics"],
  // The node's own log files. Container logs need `proxy`.
  ["/logs", "log"],
  ["/checkpoint", "checkpoint"],
  ["/statusz", "statusz"],
  ["/flagz", "configz"],
];

/** Since Kubernetes 1.33 these can be granted alone; `proxy` includes them. */
const FINER_SUBRESOURCES: readonly (readonly [path: string, subresource: string])[] = [
  ["/pods", "pods"],
  ["/runningpods", "pods"],
  ["/healthz", "healthz"],
  ["/configz", "configz"],
];

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
  const authorizer = authorizerFor(incoming, gateway.authorizer);
  const attributes = kubeletAttributes(user, nodeName, incoming.method, incoming.url.pathname);
  await requireNodePermission(authorizer, attributes);
  if (opensSession && requiresCreateForUpgrades) await requireCreateForUpgrade(authorizer, attributes);
  return user;
}

/**
 * The caller's rights while its session runs. Its credentials belong to a machine that renews them,
 * so their expiry ends no session.
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
   * The node's kubelet, which answers requests that Sluice does not. Undefined: the runtime answers
   * what it can.
   */
  readonly upstream: KubeletUpstream | undefined;
}

/** The permissions of which any one is enough for a request to the kubelet. */
export function kubeletAttributes(
  user: UserInfo,
  nodeName: string,
  method: string,
  path: string,
): readonly [Attributes, ...Attributes[]] {
  const of = (subresource: string): Attributes => ({
    user,
    verb: verbOfMethod(method) ?? VERBS[method] ?? "",
    namespace: "",
    apiGroup: "",
    apiVersion: "v1",
    resource: "nodes",
    subresource,
    name: nodeName,
    isResourceRequest: true,
    path,
  });
  const finer = subresourceOf(path, FINER_SUBRESOURCES);
  const main = of(subresourceOf(path, SUBRESOURCES) ?? "proxy");
  return finer === undefined ? [main] : [of(finer), main];
}

/** Throws the kubelet's refusals: 403 that names the permission, 500 if the authorizer cannot decide. */
async function requireNodePermission(
  authorizer: Pick<Authorizer, "authorize">,
  attributes: readonly [Attributes, ...Attributes[]],
): Promise<void> {
  const [{ user, verb, resource }] = attributes;
  const subresources = attributes.map(({ subresource }) => subresource).join(" ");
  const asked = `(user=${user.name}, verb=${verb}, resource=${resource}, subresource(s)=[${subresources}])`;
  for (const each of attributes) {
    if (await isAllowed(authorizer, each, asked)) return;
  }
  throw WIRE_ERRORS.forbidden.kubelet({ attributes: asked });
}

/**
 * A GET upgrade also needs `create`: `get nodes/proxy` looks like harmless monitoring, but would
 * open a shell in every pod of the node. The kubelet has no such check (docs/decisions).
 */
async function requireCreateForUpgrade(
  authorizer: Pick<Authorizer, "authorize">,
  [attributes]: readonly [Attributes, ...Attributes[]],
): Promise<void> {
  if (attributes.verb === "create") return;
  await requireNodePermission(authorizer, [{ ...attributes, verb: "create" }]);
}

async function isAllowed(
  authorizer: Pick<Authorizer, "authorize">,
  attributes: Attributes,
  asked: string,
): Promise<boolean> {
  try {
    return (await authorizer.authorize(attributes)).decision === "allow";
  } catch {
    throw WIRE_ERRORS["authorizer-failed"].kubelet({ attributes: asked });
  }
}

function subresourceOf(path: string, among: typeof SUBRESOURCES): string | undefined {
  return among.find(([prefix]) => path === prefix || path.startsWith(`${prefix}/`))?.[1];
}

/** RBAC's verb for a streaming subresource. It depends only on the method, whatever the protocol. */
function verbOfMethod(method: string): "get" | "create" | undefined {
  if (method === "GET") return "get";
  return method === "POST" ? "create" : undefined;
}
