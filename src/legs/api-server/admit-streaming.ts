import { traced } from "@sluice/client/internal/observability/trace";
import { tunnelOffers } from "@sluice/protocols/portforward";
import { withoutFrontProxy } from "../../access/authn/identity-headers.ts";
import type { RequestUser } from "../../access/authn/impersonation.ts";
import {
  type Authorizer,
  authorizerFor,
  requireCreatePermission,
  requirePermission,
} from "../../access/authz/authorizer.ts";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import { requirePolicy, type WantedSession } from "../../access/policy/evaluate-policy.ts";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { requireFresh, SESSION_KINDS } from "../../cluster/cluster.ts";
import { locate, type StreamingTarget } from "../../cluster/locate.ts";
import type { ConnectAdmission } from "../../kubernetes/connect-admission.ts";
import { requestedOptions } from "../../listeners/audit-request.ts";
import { requireCarriableUpgrade } from "../../sessions/client-offer.ts";
import type {
  AccessContext,
  ClusterContext,
  GatewayContext,
  SessionRunContext,
} from "../../sessions/context.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import type { Admission } from "../../sessions/leg.ts";
import { type Plan, planFor, planThroughApiServer } from "../../sessions/plan.ts";
import { SessionStanding } from "../../sessions/reauthorizer.ts";
import {
  parseStreamingRequest,
  type StreamingPath,
  type StreamingRequest,
} from "../../sessions/streaming-request.ts";

/** A session with a pod of the cluster, and the pod's node. */
export interface ApiServerAdmission extends Admission {
  readonly target: StreamingTarget;
}

/**
 * Makes all decisions before a node is dialled, in kube-apiserver's order: user, authorization,
 * request, a GET's synthetic `create`, target, plan. Throws StatusError.
 */
export async function admitStreaming(
  path: StreamingPath,
  incoming: IncomingStreaming,
  gateway: GatewayContext,
  judgeConnect: ConnectAdmission["judge"] | undefined,
): Promise<ApiServerAdmission> {
  const { user, requireCreate } = await admitUser(path, incoming, gateway);
  const headers = withoutFrontProxy(incoming.headers, gateway.authenticator);
  const request = parseStreamingRequest(path, { ...incoming, headers });
  incoming.trail?.requested(requestedOptions(request));
  await requireCreate();

  const { trace } = incoming;
  const target = await traced(trace, "locate", async () => {
    requireFresh(gateway.cluster, SESSION_KINDS);
    await gateway.lookUp?.(request.namespace, request.pod);
    return locate(gateway.cluster, request, gateway.kubelet);
  });
  if (request.offer.transport === "none") throw WIRE_ERRORS["no-upgrade"].streaming();
  requireCarriableUpgrade(request);
  const verdict = judgeConnect?.(path);
  const plan = verdict ? planThroughApiServer(verdict.reason) : planToNode(request, target, gateway);
  const policy = traced(trace, "policy", () => applyPolicy(user, request, target, plan, gateway));
  const { node, container, isEphemeral } = target;
  const standing = standingOf(path, incoming, user, gateway);
  return { user, request, node: node.name, container, isEphemeral, target, plan, policy, standing, trace };
}

/**
 * A function of its own, so that a session keeps only those parts of its request that the checks
 * need.
 */
function standingOf(
  path: StreamingPath,
  incoming: IncomingStreaming,
  user: RequestUser,
  gateway: AccessContext & ClusterContext,
): SessionStanding<RequestUser> {
  const line = { method: incoming.method, path: incoming.url.pathname };
  const requireRequester = requesterCheckOf(incoming, user, gateway);
  return new SessionStanding(user, gateway.authorizer, async (current, authorizer) => {
    await requireRequester(current, authorizer);
    const again = authorizing(path, line, current, authorizer, gateway);
    await again.requireVerb();
    await again.requireCreate();
  });
}

function planToNode(
  { subresource, offer }: StreamingRequest,
  { node }: StreamingTarget,
  { nodes, gates }: ClusterContext,
): Plan {
  return planFor(subresource, offer, nodes.capabilityOf(node), {
    TranslateStreamCloseWebsocketRequests: gates.isEnabled("TranslateStreamCloseWebsocketRequests"),
    PortForwardWebsockets: gates.isEnabled("PortForwardWebsockets"),
    ExtendWebSocketsToKubelet: gates.isEnabled("ExtendWebSocketsToKubelet"),
  });
}

/**
 * Authorizes the user for the method's verb; `requireCreate` is the synthetic check of a GET. Both
 * throw StatusError.
 */
export async function admitUser(
  path: StreamingPath,
  incoming: IncomingStreaming,
  gateway: AccessContext & ClusterContext,
): Promise<{ readonly user: RequestUser; requireCreate(): Promise<void> }> {
  if (incoming.method !== "GET" && incoming.method !== "POST")
    throw WIRE_ERRORS["method-not-allowed"].streaming({ method: incoming.method });
  const user = await identify(incoming, gateway);
  const authorizer = authorizerFor(incoming, gateway.authorizer);
  const line = { method: incoming.method, path: incoming.url.pathname };
  const { requireVerb, requireCreate } = authorizing(path, line, user, authorizer, gateway);
  await traced(incoming.trace, "authorize", requireVerb);
  return { user, requireCreate: () => traced(incoming.trace, "authorize", requireCreate) };
}

/** The permissions for a session at this path: for the method's verb, and the synthetic check of a GET. */
function authorizing(
  path: StreamingPath,
  line: { readonly method: string; readonly path: string },
  user: UserInfo,
  authorizer: Pick<Authorizer, "authorize">,
  { gates }: Pick<ClusterContext, "gates">,
): { requireVerb(): Promise<void>; requireCreate(): Promise<void> } {
  const verb = line.method === "GET" ? "get" : "create";
  const attributes = {
    user,
    verb,
    namespace: path.namespace,
    apiGroup: "",
    apiVersion: "v1",
    resource: "pods",
    subresource: path.subresource,
    name: path.pod,
    isResourceRequest: true,
    path: line.path,
  };
  const isGateOn = gates.isEnabled("AuthorizePodWebsocketUpgradeCreatePermission");
  return {
    requireVerb: () => requirePermission(authorizer, attributes),
    requireCreate: () => requireCreatePermission(authorizer, attributes, isGateOn),
  };
}

/** Checks that an impersonated user's requester may still impersonate; throws StatusError. */
export function requesterCheckOf(
  { headers, method, url }: IncomingStreaming,
  { requester }: RequestUser,
  { impersonation }: Pick<AccessContext, "impersonation">,
): (user: RequestUser, authorizer: Pick<Authorizer, "authorize">) => Promise<void> {
  if (requester === undefined) return async () => {};
  const line = { method, path: url.pathname, query: url.searchParams };
  return async ({ requester: now = requester }, authorizer) => {
    await impersonation.decide(now, headers, (user) => requestAttributes(user, line), authorizer);
  };
}

/**
 * Authenticates and audits a request's user, and impersonates if requested and allowed. Throws
 * StatusError 401, 403, or 503 if a required audit log cannot be written.
 */
export async function identify(incoming: IncomingStreaming, gateway: AccessContext): Promise<RequestUser> {
  const { headers, method, url, notes, trail } = incoming;
  const caller = await traced(incoming.trace, "authenticate", () =>
    gateway.authenticator.authenticate(incoming),
  );
  if (caller === undefined) throw WIRE_ERRORS.unauthenticated.streaming();
  if (notes !== undefined) notes.user = caller.name;
  await trail?.received(caller);
  const line = { method, path: url.pathname, query: url.searchParams };
  const impersonated = await gateway.impersonation.decide(
    caller,
    headers,
    (user) => requestAttributes(user, line),
    authorizerFor({ source: incoming.source }, gateway.authorizer),
  );
  await incoming.admit?.(`user ${impersonated?.user.name ?? caller.name}`);
  if (impersonated === undefined) return caller;
  const { user } = impersonated;
  if (notes !== undefined) {
    notes.user = user.name;
    notes.requestedBy = caller.name;
  }
  trail?.impersonating(impersonated);
  // The session ends with the credentials that came with it.
  return { ...user, requestedBy: caller.name, requester: caller, expiresAtMs: caller.expiresAtMs };
}

/**
 * Applies policy once user, pod and container are known. Throws StatusError 403 that names the
 * rule, and 404 if the pod was deleted or replaced.
 */
export function applyPolicy(
  user: UserInfo,
  request: StreamingRequest,
  target: StreamingTarget,
  plan: Plan,
  { policy, cluster }: Pick<SessionRunContext, "policy"> & Pick<ClusterContext, "cluster">,
): Admission["policy"] {
  const { namespace, pod, subresource, command, streams, reason } = request;
  const known = cluster.getPod(namespace, pod);
  if (known === undefined || known.metadata.uid !== target.podUid)
    throw WIRE_ERRORS["pod-unknown"].streaming({ name: pod });
  const wanted: WantedSession = {
    user: user.name,
    groups: user.groups,
    namespace,
    podLabels: known.metadata.labels ?? {},
    container: target.container,
    subresource,
    command,
    tty: streams.tty,
    stdin: streams.stdin,
    ports: knownPorts(request),
    reason,
  };
  // Sluice reads SPDY as it passes, but SPDY in a WebSocket only if the WebSocket ends here.
  const canSeePorts = plan.kind === "tunnel" || request.offer.transport === "spdy";
  return { ...requirePolicy(policy?.rules ?? [], wanted, pod, canSeePorts), reason };
}

/**
 * Only the legacy WebSocket port-forward names its ports in the URL; SPDY, tunnelled or not, names
 * them in stream headers.
 */
function knownPorts({ subresource, offer, ports }: StreamingRequest): readonly number[] | undefined {
  if (subresource !== "portforward") return [];
  if (offer.transport !== "websocket" || tunnelOffers(offer.protocols).length > 0) return undefined;
  return ports;
}
