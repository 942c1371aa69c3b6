import type { HeaderList } from "@sluice/client/internal/http/header-list";
import type { UpgradeResponse } from "@sluice/client/internal/http/upgrade/upgrade-request";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { ApiServerUpstream } from "../../kubernetes/api-server-upstream.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import { requestSession } from "../../sessions/request-session.ts";
import type { StreamingRequest } from "../../sessions/streaming-request.ts";
import { forwardingError } from "../../sessions/upstream-errors.ts";
import { upstreamRequestFor } from "../../sessions/upstream-request.ts";
import type { ApiServerAdmission } from "./admit-streaming.ts";
import { impersonationLines } from "./user-lines.ts";

/**
 * Requests the session from the API server in the user's name, so that its admission applies.
 * Throws StatusError, and UpstreamError "aborted" if the client left.
 */
export async function dialApiServer(
  { user, request, plan, trace }: ApiServerAdmission,
  signal: AbortSignal,
  apiServer: ApiServerUpstream,
  gateway: GatewayContext,
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
