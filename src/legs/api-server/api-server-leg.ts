// src/legs/api-server: the API server's streaming subresources; everything else is forwarded, or
// answered from manifests

import type { ApiServerUpstream } from "../../kubernetes/api-server-upstream.ts";
import { isRuntimeUnreached, refusedPath } from "../../nodes/refused-path.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import type { Fallback, Refusal } from "../../sessions/leg.ts";
import { FirstMessageObserver } from "../../sessions/observers/first-message-observer.ts";
import { planAfter, webSocketPathOf } from "../../sessions/plan.ts";
import { type ResumableLeg, resumableClient } from "../../sessions/resumption/run-resumable.ts";
import type { StreamingPath } from "../../sessions/streaming-request.ts";
import { upstreamRequestFor } from "../../sessions/upstream-request.ts";
import { type ApiServerAdmission, admitStreaming, admitUser, type JudgeConnect } from "./admit-streaming.ts";
import { applyPolicy } from "./apply-policy.ts";
import { dialApiServer } from "./dial-api-server.ts";
import { dialNode } from "./dial-node.ts";
import { kubeletPath } from "./kubelet-path.ts";

/** Decides which sessions an API server must carry, and names that API server. */
export interface AdmissionRoute {
  readonly judge: JudgeConnect;
  readonly apiServer: ApiServerUpstream;
}

/**
 * A session with a pod of the cluster: admitted like in kube-apiserver, and requested from the
 * pod's node.
 */
export function apiServerLeg(
  path: StreamingPath,
  gateway: GatewayContext,
  route: AdmissionRoute | undefined,
): ResumableLeg<ApiServerAdmission> {
  return {
    path,
    admit: (incoming) => admitStreaming(path, incoming, gateway, route?.judge),
    dial: (admission, signal) => {
      const { request, target, plan } = admission;
      if (route !== undefined && plan.path === "api-server")
        return dialApiServer(admission, signal, route.apiServer, gateway);
      // Only a legacy port-forward names its ports in the URL, and bridges do not use that protocol
      // upstream.
      const asked = plan.kind === "bridge" ? { ...request, ports: [] } : request;
      const kubeletRequest = upstreamRequestFor(request, kubeletPath(asked, target.container), plan);
      return dialNode(admission, kubeletRequest, signal, gateway);
    },
    switched: (admission) => firstMessageObserverFor(admission, gateway),
    fallback: fallbackOver(gateway),
    downstream: (admission, client) =>
      resumableClient(client, admission, gateway.resumable, (user) => {
        const { request, target, plan } = admission;
        applyPolicy(user, request, target, plan, gateway);
      }),
    authorizeResumption: async (incoming) => {
      const { user, requireCreate } = await admitUser(path, incoming, gateway);
      await requireCreate();
      return user;
    },
  };
}

/**
 * Falls back to SPDY if the node refuses the WebSocket path it declares. Silence, a broken
 * connection or a wrong 101 may hide a started command: the path is marked, and the client gets the
 * error (docs/node-capability.md).
 */
function fallbackOver(gateway: GatewayContext): Fallback<ApiServerAdmission> {
  return {
    planAfter,
    replan: (admission, plan, refusal) => {
      if (causeOf(refusal) === undefined) return undefined;
      const { user, request, target } = admission;
      return { ...admission, plan, policy: applyPolicy(user, request, target, plan, gateway) };
    },
    fellBack: ({ target, request: { subresource } }, refusal) => {
      const cause = causeOf(refusal);
      if (cause === undefined) return;
      const { nodes, metrics, logger } = gateway;
      nodes.recordFailure(target.node, webSocketPathOf(subresource), cause);
      metrics.nodes.fellBack(subresource, cause);
      metrics.upgradeFailed(subresource);
      logger.warn(
        { node: target.node.name, subresource, code: refusal.answer?.status, cause },
        "the node refused the WebSocket path that it declares; the session goes on over SPDY",
      );
    },
  };
}

function causeOf(refusal: Refusal) {
  return refusal.answer && refusedPath(refusal.answer.status, refusal.text);
}

/**
 * A kubelet may accept v5 before it reaches its runtime; only its first message proves success
 * (docs/node-capability.md).
 */
function firstMessageObserverFor(
  { plan, request: { subresource }, target }: ApiServerAdmission,
  { nodes, logger }: Pick<GatewayContext, "nodes" | "logger">,
): FirstMessageObserver | undefined {
  if (planAfter(plan, subresource) === undefined) return undefined;
  const path = webSocketPathOf(subresource);
  if (path === "tunnel") {
    // On this path the kubelet contacts its runtime before it answers.
    nodes.recordSuccess(target.node, path);
    return undefined;
  }
  return new FirstMessageObserver((message) => {
    if (message.kind === "failure" && isRuntimeUnreached(message.text)) {
      nodes.recordFailure(target.node, path, "failed-after-upgrade");
      logger.warn(
        { node: target.node.name, subresource },
        "the node accepted WebSocket and could not carry it on",
      );
    } else {
      nodes.recordSuccess(target.node, path);
    }
  });
}
