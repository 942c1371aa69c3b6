import { StatusError } from "@sluice/client/internal/api/status";
import { CLAIMED_KUBERNETES_VERSION } from "@sluice/client/internal/config/version";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { headerValue } from "@sluice/client/internal/http/header-list";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import { requirePermission } from "../../access/authz/require-permission.ts";
import type { UserInfo } from "../../access/user-info.ts";
import { answerApiRequest } from "../../api/read-only-server/answer-api-request.ts";
import { requireFresh, SESSION_KINDS } from "../../cluster/freshness.ts";
import { writeAnswer, writeStatus } from "../../listeners/write-answer.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import { readOnlyOptions } from "./answer-from-cluster.ts";

/**
 * How long the API server has to answer for a pod that Sluice also knows. Past it Sluice answers,
 * with a Warning.
 */
export const KNOWN_POD_ANSWER_MS = 10_000;

const POD_PATH = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)$/;

/** Whether this reads one pod that Sluice follows; kubectl does so before each session. */
export function readsKnownPod({ method, url }: IncomingStreaming, { cluster }: GatewayContext): boolean {
  const [, namespace, name] = POD_PATH.exec(url.pathname) ?? [];
  if (method !== "GET" || cluster.freshnessOf === undefined || url.searchParams.has("watch")) return false;
  return namespace !== undefined && name !== undefined && cluster.getPod(namespace, name) !== undefined;
}

/**
 * While the API server gives no answer, answers with the pod's last known state, marked by a
 * Warning (RFC 7234 section 5.5). The user needs permission to read it, and the state must be no
 * older than `cluster.maxStateAge`; all others get `failure`.
 */
export async function answerKnownPod(
  incoming: IncomingStreaming,
  downstream: HttpDownstream,
  userOf: () => Promise<UserInfo>,
  failure: StatusError,
  gateway: GatewayContext,
): Promise<void> {
  const { url, headers } = incoming;
  const { pathname: path, searchParams: query } = url;
  const { cluster } = gateway;
  try {
    const attributes = requestAttributes(await userOf(), { method: "GET", path, query });
    await requirePermission(gateway.authorizer, attributes);
    requireFresh(cluster, SESSION_KINDS);
    const accept = headerValue(headers, "accept") ?? "";
    const options = readOnlyOptions(gateway, CLAIMED_KUBERNETES_VERSION);
    const answer = answerApiRequest({ method: "GET", path, query, accept }, cluster, options);
    if (answer?.status !== 200 || !(answer.body instanceof Uint8Array)) throw failure;
    const asOf = cluster.freshnessOf?.(SESSION_KINDS).asOf.toISOString();
    const warning = `299 - "the API server is away: this is what Sluice knew of the pod at ${asOf}, without the fields that it does not keep"`;
    writeAnswer(downstream, 200, [...Object.entries(answer.headers), ["Warning", warning]], answer.body);
  } catch (error) {
    // Our own 503 tells how old the state is; a 401 or 403 would reveal more than the API server
    // has.
    const isOwn = error instanceof StatusError && error.code === 503;
    writeStatus(downstream, (isOwn ? error : failure).status);
  }
}
