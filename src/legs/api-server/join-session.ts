import { randomUUID } from "node:crypto";
import { headerValue } from "@sluice/client/internal/http/header-list";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { RequestUser } from "../../access/authn/impersonation.ts";
import {
  type Authorizer,
  requireCreatePermission,
  requirePermission,
} from "../../access/authz/authorizer.ts";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import { REASON_HEADER, REASON_QUERY, reasonOf, requirePolicy } from "../../access/policy/require-policy.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { SessionsApi } from "../../session-api/sessions-api.ts";
import type { StreamingSession } from "../../session-api/streaming-session.ts";
import { carryJoined, checkJoinHandshake } from "../../sessions/carry-joined.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import type { PendingClient } from "../../sessions/pending-client.ts";
import { SessionStanding } from "../../sessions/reauthorizer.ts";
import { identify, requesterCheckOf } from "./admit-streaming.ts";

/**
 * Joins a running session over WebSocket. The joiner needs `get` and `create` of streamingsessions/attach,
 * and what opening that session alone needs. Throws StatusError and HandshakeRefusal.
 */
export async function joinSession(
  incoming: IncomingStreaming,
  client: PendingClient,
  api: SessionsApi,
  gateway: GatewayContext,
): Promise<void> {
  const { trail, url } = incoming;
  const user = await identify(incoming, gateway);
  const authorizer = trail?.watching(gateway.authorizer) ?? gateway.authorizer;
  const require = rightsOf(incoming, gateway);
  await require.attach(user, authorizer);
  const handshake = checkJoinHandshake(incoming);
  const session = await api.sessionAt(url.pathname);
  await require.session(session, user, authorizer);
  const reason = reasonOf(headerValue(incoming.headers, REASON_HEADER), url.searchParams.get(REASON_QUERY));
  if (reason !== "") trail?.annotate("sluice.dev/reason", reason);
  await gateway.lookUp?.(session.metadata.namespace ?? "", session.spec.pod);
  requireSessionPolicy(session, user, reason, gateway);
  const release = gateway.sessions.admit();
  try {
    const joinable = await api.joinable(session, randomUUID(), user.name);
    if (client.signal.aborted) {
      await joinable.type(new Uint8Array(0), true);
      throw new UpstreamError("aborted", "the joiner left");
    }
    trail?.annotate("sluice.dev/session", session.metadata.name);
    trail?.annotate("sluice.dev/session-user", session.spec.user.username);
    const requireRequester = requesterCheckOf(incoming, user, gateway);
    const standing = new SessionStanding(user, gateway.authorizer, async (current, asked) => {
      await requireRequester(current, asked);
      await require.attach(current, asked);
      await require.session(session, current, asked);
    });
    const fields = { id: session.metadata.name, owner: session.spec.user.username, user: user.name };
    let unfollow: (() => void) | undefined;
    carryJoined(client, handshake, joinable, gateway, {
      onLife: (life) => {
        unfollow = gateway.reauthorizer?.follow(life, standing);
        gateway.logger.info({ session: fields }, "session joined");
      },
      onOver: () => {
        unfollow?.();
        release();
      },
      onReport: ({ message, ...end }) =>
        gateway.logger.info({ session: fields, ...end, reason: message }, "join ended"),
    });
  } catch (error) {
    release();
    throw error;
  }
}

type RequireRight = (user: RequestUser, authorizer: Pick<Authorizer, "authorize">) => Promise<void>;

/** The rights of a join, for its start and while it lasts. Each throws StatusError. */
function rightsOf({ method, url }: IncomingStreaming, { gates }: Pick<GatewayContext, "gates">) {
  const line = { method, path: url.pathname, query: url.searchParams };
  const isGateOn = gates.isEnabled("AuthorizePodWebsocketUpgradeCreatePermission");
  const attach: RequireRight = async (user, authorizer) => {
    const attributes = requestAttributes(user, line);
    await requirePermission(authorizer, attributes);
    await requireCreatePermission(authorizer, attributes, isGateOn);
  };
  /** Without the right to open such a session, a user gets none through another's. */
  const session = async (
    { metadata, spec }: StreamingSession,
    user: RequestUser,
    authorizer: Pick<Authorizer, "authorize">,
  ): Promise<void> => {
    const pod = { namespace: metadata.namespace ?? "", name: spec.pod, subresource: spec.subresource };
    const attributes = { ...requestAttributes(user, line), ...pod, verb: "create" };
    await requirePermission(authorizer, { ...attributes, apiGroup: "", apiVersion: "v1", resource: "pods" });
  };
  return { attach, session };
}

/** The joiner is judged as if the session were its own. Throws StatusError 403, and 404 for an unknown pod. */
function requireSessionPolicy(
  { metadata, spec }: StreamingSession,
  user: RequestUser,
  reason: string,
  { policy, cluster }: Pick<GatewayContext, "policy" | "cluster">,
): void {
  const { namespace = "" } = metadata;
  const rules = policy?.rules ?? [];
  const pod = cluster.getPod(namespace, spec.pod);
  // Its labels could be any.
  if (pod === undefined && rules.length > 0) throw WIRE_ERRORS["pod-unknown"].streaming({ name: spec.pod });
  const wanted = {
    user: user.name,
    groups: user.groups,
    namespace,
    podLabels: pod?.metadata.labels ?? {},
    container: spec.container,
    subresource: spec.subresource as "exec" | "attach",
    command: spec.command ?? [],
    tty: spec.tty ?? false,
    stdin: spec.stdin ?? false,
    ports: [],
    reason,
  };
  requirePolicy(rules, wanted, spec.pod, true);
}
