import type { UserInfo } from "../../access/authn/authenticator.ts";
import { requireCreatePermission } from "../../access/authz/create-permission.ts";
import { requirePermission } from "../../access/authz/require-permission.ts";
import { badRequest, methodNotAllowed, StatusError } from "../../api/status.ts";
import { locate, type StreamingTarget } from "../../cluster/locate.ts";
import { type HeaderList, hasHeader, headerValues } from "../../http/header-list.ts";
import { requestedOptions } from "../../listeners/audit-request.ts";
import type { IncomingStreaming } from "../../listeners/incoming-request.ts";
import { clientOfferOf } from "../../sessions/client-offer.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import { type Plan, planFor, wantsNewProtocol } from "../../sessions/plan.ts";
import {
  parseStreamingRequest,
  type StreamingPath,
  type StreamingRequest,
} from "../../sessions/streaming-request.ts";
import { type AppliedPolicy, applyPolicy } from "./apply-policy.ts";
import { identify } from "./identify.ts";
import { withoutFrontProxy } from "./identity-headers.ts";

/** A streaming request that may go ahead, and the way it will take. */
export interface PreparedStreaming {
  readonly user: UserInfo;
  readonly request: StreamingRequest;
  readonly target: StreamingTarget;
  readonly plan: Plan;
  readonly policy: AppliedPolicy;
}

/** Decides, and lets operators see a refusal: from here on every streaming request is counted exactly once. */
export async function prepareStreaming(
  path: StreamingPath,
  incoming: IncomingStreaming,
  gateway: GatewayContext,
): Promise<PreparedStreaming> {
  return countingRefusals(path, incoming, gateway, () => decide(path, incoming, gateway));
}

/** What is decided about a request; a refusal is counted, logged and thrown on. */
export async function countingRefusals<Decided>(
  path: StreamingPath,
  incoming: IncomingStreaming,
  gateway: GatewayContext,
  decide: () => Promise<Decided>,
): Promise<Decided> {
  try {
    return await decide();
  } catch (error) {
    const code = error instanceof StatusError ? error.code : 500;
    const reason = error instanceof Error ? error.message : String(error);
    gateway.metrics.streamingRefused(path.subresource, undefined, code);
    if (wantsNewProtocol(path.subresource, clientOfferOf(incoming.headers))) {
      gateway.metrics.upgradeFailed(path.subresource);
    }
    const { remoteAddress, notes } = incoming;
    gateway.logger.info({ ...path, remoteAddress, user: notes?.user, code, reason }, "request refused");
    if (notes !== undefined) notes.isLogged = true;
    throw error;
  }
}

/**
 * All that is decided before a node is dialled, in kube-apiserver's order: who, may they, what do they want, may they
 * really (the synthetic `create` of a GET), where is it, by which path. Any step refuses by throwing a StatusError.
 */
async function decide(
  path: StreamingPath,
  incoming: IncomingStreaming,
  gateway: GatewayContext,
): Promise<PreparedStreaming> {
  const { user, requireCreate } = await admitUser(path, incoming, gateway);
  const headers = withoutFrontProxy(incoming.headers, gateway.authenticator);
  const request = parseStreamingRequest(path, { ...incoming, headers });
  incoming.trail?.requested(requestedOptions(request));
  await requireCreate();

  await gateway.lookUp?.(request.namespace, request.pod);
  const target = locate(gateway.cluster, request, gateway.kubelet);
  if (request.offer.transport === "none") throw badRequest("Upgrade request required");
  requireCarriableUpgrade(request);
  const plan = planFor(request.subresource, request.offer, gateway.nodes.capabilityOf(target.node), {
    TranslateStreamCloseWebsocketRequests: gateway.gates.isEnabled("TranslateStreamCloseWebsocketRequests"),
    PortForwardWebsockets: gateway.gates.isEnabled("PortForwardWebsockets"),
    ExtendWebSocketsToKubelet: gateway.gates.isEnabled("ExtendWebSocketsToKubelet"),
  });
  const policy = applyPolicy(user, request, target, plan, gateway);
  return { user, request, target, plan, policy };
}

/** Who asks, and may they by the method's verb; `requireCreate` is the synthetic question of a GET. Both throw StatusError. */
export async function admitUser(
  path: StreamingPath,
  incoming: IncomingStreaming,
  gateway: GatewayContext,
): Promise<{ readonly user: UserInfo; requireCreate(): Promise<void> }> {
  if (incoming.method !== "GET" && incoming.method !== "POST") throw methodNotAllowed(incoming.method);
  const user = await identify(incoming, gateway);
  const authorizer = incoming.trail?.watching(gateway.authorizer) ?? gateway.authorizer;

  const verb = incoming.method === "GET" ? "get" : "create";
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
    path: incoming.url.pathname,
  };
  await requirePermission(authorizer, attributes);
  const isGateOn = gateway.gates.isEnabled("AuthorizePodWebsocketUpgradeCreatePermission");
  return { user, requireCreate: () => requireCreatePermission(authorizer, attributes, isGateOn) };
}

/** Throws StatusError 400 for an upgrade to something else than a session's protocols, and for one with a body. */
export function requireCarriableUpgrade({
  offer,
  headers,
}: Pick<StreamingRequest, "offer" | "headers">): void {
  if (offer.transport === "unsupported") {
    throw badRequest("unable to upgrade: only websocket and SPDY/3.1 are supported");
  }
  if (hasBody(headers)) throw badRequest("an upgrade request can not have a body");
}

/** Bytes of a body would be taken for the first ones of the session. No client of Kubernetes sends any. */
function hasBody(headers: HeaderList): boolean {
  const lengths = headerValues(headers, "content-length");
  return hasHeader(headers, "transfer-encoding") || lengths.some((length) => !/^0+$/.test(length));
}
