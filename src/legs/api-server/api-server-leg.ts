// src/legs/api-server: the API server's streaming subresources; everything else is forwarded, or
// answered from manifests

import type { HeaderList } from "@sluice/client/internal/http/header-list";
import type { UpgradeResponse } from "@sluice/client/internal/http/upgrade/upgrade-request";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { ApiServerUpstream } from "../../kubernetes/api-server-upstream.ts";
import type { ConnectAdmission } from "../../kubernetes/connect-admission.ts";
import { isRuntimeUnreached, refusedPath } from "../../nodes/node-capability.ts";
import type { ClusterContext, GatewayContext, SessionRunContext } from "../../sessions/context.ts";
import type { Fallback, Refusal } from "../../sessions/leg.ts";
import { FirstMessageObserver } from "../../sessions/observers/first-message-observer.ts";
import { planAfter, webSocketPathOf } from "../../sessions/plan.ts";
import { requestSession } from "../../sessions/request-session.ts";
import { type ResumableLeg, resumableClient } from "../../sessions/resumption/run-resumable.ts";
import type { StreamingPath, StreamingRequest } from "../../sessions/streaming-request.ts";
import { forwardingError } from "../../sessions/upstream-errors.ts";
import { upstreamRequestFor } from "../../sessions/upstream-request.ts";
import { type ApiServerAdmission, admitStreaming, admitUser, applyPolicy } from "./admit-streaming.ts";
import { dialNode } from "./dial-node.ts";
import { impersonationLines } from "./user-lines.ts";

/** Decides which sessions an API server must carry, and names that API server. */
export interface AdmissionRoute {
  /** The rule that may judge the session; undefined if none may, and the session goes to its node. */
  readonly judge: ConnectAdmission["judge"];
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
function fallbackOver(gateway: ClusterContext & SessionRunContext): Fallback<ApiServerAdmission> {
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
  { nodes, logger }: ClusterContext & SessionRunContext,
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

/** Builds the kubelet's URL like kube-apiserver: only true flags, command repeated, ports joined. */
export function kubeletPath(request: StreamingRequest, container: string | undefined): string {
  const { namespace, pod, subresource, streams } = request;
  const query = new URLSearchParams();
  if (subresource === "portforward") {
    if (request.ports.length > 0) query.set("port", request.ports.join(","));
    return withQuery(`/portForward/${encodeURIComponent(namespace)}/${encodeURIComponent(pod)}`, query);
  }
  for (const argument of request.command) query.append("command", argument);
  if (streams.stderr) query.set("error", "1");
  if (streams.stdin) query.set("input", "1");
  if (streams.stdout) query.set("output", "1");
  if (streams.tty) query.set("tty", "1");
  const segments = [subresource, namespace, pod, container ?? ""].map(encodeURIComponent);
  return withQuery(`/${segments.join("/")}`, query);
}

function withQuery(path: string, query: URLSearchParams): string {
  return query.size === 0 ? path : `${path}?${query}`;
}

/**
 * Requests the session from the API server in the user's name, so that its admission applies.
 * Throws StatusError, and UpstreamError "aborted" if the client left.
 */
async function dialApiServer(
  { user, request, plan, trace }: ApiServerAdmission,
  signal: AbortSignal,
  apiServer: ApiServerUpstream,
  gateway: SessionRunContext,
): Promise<UpgradeResponse> {
  const { impersonates, ownCredentials, pathPrefix = "", upstream } = apiServer;
  const named: HeaderList = impersonates ? await impersonationLines(user, apiServer, gateway) : [];
  const asked = upstreamRequestFor(request, pathPrefix + podPath(request), plan, {
    keepsIdentity: !impersonates,
  });
  const upgrade = { ...asked, headers: [...asked.headers, ...named] };
  try {
    const { endpoint, connect } = upstream;
    const response = await requestSession(endpoint, upgrade, gateway, { signal, connect, trace });
    if (response.status === 401 && impersonates) ownCredentials?.forget();
    return response;
  } catch (error) {
    if (!(error instanceof UpstreamError) || error.code === "aborted") throw error;
    throw forwardingError(error);
  }
}

/** Built from the authorized values, so the API server cannot read the request differently. */
function podPath({
  namespace,
  pod,
  subresource,
  container,
  command,
  streams,
  ports,
}: StreamingRequest): string {
  const query = new URLSearchParams();
  if (container !== undefined) query.set("container", container);
  for (const argument of command) query.append("command", argument);
  for (const [name, isWanted] of Object.entries(streams)) {
    if (isWanted && subresource !== "portforward") query.set(name, "true");
  }
  for (const port of ports) query.append("ports", String(port));
  const [inNamespace, name] = [namespace, pod].map(encodeURIComponent);
  const path = `/api/v1/namespaces/${inNamespace}/pods/${name}/${subresource}`;
  return query.size === 0 ? path : `${path}?${query}`;
}
