import type { UserInfo } from "../../access/authn/authenticator.ts";
import { withoutFrontProxy } from "../../access/authn/identity-headers.ts";
import { requireCreatePermission } from "../../access/authz/create-permission.ts";
import { requirePermission } from "../../access/authz/require-permission.ts";
import { badRequest, methodNotAllowed } from "../../api/status.ts";
import { locate, type StreamingTarget } from "../../cluster/locate.ts";
import { requestedOptions } from "../../listeners/audit-request.ts";
import type { AppliedPolicy } from "../../sessions/applied-policy.ts";
import { requireCarriableUpgrade } from "../../sessions/client-offer.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import { countingRefusals } from "../../sessions/count-refusals.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import { type Plan, planFor } from "../../sessions/plan.ts";
import {
  parseStreamingRequest,
  type StreamingPath,
  type StreamingRequest,
} from "../../sessions/streaming-request.ts";
import { applyPolicy } from "./apply-policy.ts";
import { identify } from "./identify.ts";

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
