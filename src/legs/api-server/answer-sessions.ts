import { randomUUID } from "node:crypto";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { headerValue } from "@sluice/client/internal/http/header-list";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { frontProxyNames } from "../../access/authn/identity-headers.ts";
import type { RequestUser } from "../../access/authn/impersonation.ts";
import {
  type Authorizer,
  authorizerFor,
  requireCreatePermission,
  requirePermission,
} from "../../access/authz/authorizer.ts";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import { REASON_HEADER, REASON_QUERY, reasonOf, requirePolicy } from "../../access/policy/evaluate-policy.ts";
import type { ApiAnswer } from "../../api/read-only-server/api-answer.ts";
import type { FollowUser } from "../../api/read-only-server/watch-stream.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { isAttachPath, isOutputPath } from "../../listeners/exchange-times.ts";
import { readJson } from "../../listeners/request-body.ts";
import { answerAggregator, isAggregator } from "../../session-api/discovery.ts";
import { isSessionsPath, type SessionsApi } from "../../session-api/sessions-api.ts";
import type { StreamingSession } from "../../session-api/streaming-session.ts";
import { carryJoined, checkJoinHandshake } from "../../sessions/carry-joined.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import type { IncomingStreaming, PendingClient } from "../../sessions/incoming-request.ts";
import { SessionStanding } from "../../sessions/reauthorizer.ts";
import { annotateEnd } from "../../sessions/session-record.ts";
import type { RunningSession } from "../../sessions/sessions.ts";
import { identify, requesterCheckOf } from "./admit-streaming.ts";
import { abortOnceRevoked, recordAnswer, sendAnswer } from "./answer-from-cluster.ts";
import type { OtherRequests } from "./api-server.ts";
import { isDiscovery, jsonClausesOf, withGroupAdded } from "./merge-discovery.ts";

const STATUS = { kind: "Status", apiVersion: "v1" };

/**
 * Answers the API group of sessions, and adds it to the discovery of all groups. Other handlers get
 * the other requests.
 */
export function withSessionsApi(
  others: OtherRequests,
  api: SessionsApi,
  gateway: GatewayContext,
): OtherRequests {
  return {
    async handleRequest(incoming, downstream): Promise<void> {
      const { url } = incoming;
      const forAggregator = await answerIfAggregator(incoming, gateway);
      if (forAggregator !== undefined) {
        ignored(downstream);
        return await sendAnswer(forAggregator, downstream);
      }
      if (isSessionsPath(url.pathname)) {
        const answer = await answerSessions(incoming, downstream, api, gateway);
        recordAnswer(answer, incoming);
        if (isOutputPath(url.pathname)) incoming.trail?.started({ code: answer.status });
        return await sendAnswer(answer, downstream);
      }
      const accept = headerValue(incoming.headers, "accept") ?? "";
      const jsonForms = isDiscovery(incoming) ? jsonClausesOf(accept) : undefined;
      if (jsonForms === undefined) return await others.handleRequest(incoming, downstream);
      const { headers, merging } = withGroupAdded(downstream, jsonForms);
      await others.handleRequest({ ...incoming, headers }, merging);
    },
    async handleUpgrade(incoming, client): Promise<void> {
      if (!isSessionsPath(incoming.url.pathname)) return await others.handleUpgrade(incoming, client);
      if (isAttachPath(incoming.url.pathname)) return await joinSession(incoming, client, api, gateway);
      await admit(incoming, gateway);
      throw WIRE_ERRORS["path-unknown"].streaming();
    },
  };
}

/**
 * Throws StatusError. The header alone proves nothing: the front proxy's certificate must come with
 * it.
 */
async function answerIfAggregator(
  incoming: IncomingStreaming,
  gateway: GatewayContext,
): Promise<ApiAnswer | undefined> {
  const { headers, method, url, trail, notes } = incoming;
  if (method !== "GET" || !headers.some(([, value]) => isAggregator(value))) return undefined;
  const user = await gateway.authenticator.authenticate(incoming);
  if (user === undefined || !isAggregator(user.name)) return undefined;
  const answer = answerAggregator(url.pathname, headerValue(headers, "accept") ?? "");
  if (answer === undefined) return undefined;
  if (notes !== undefined) notes.user = user.name;
  await trail?.received(user);
  recordAnswer(answer, incoming);
  return answer;
}

async function answerSessions(
  incoming: IncomingStreaming,
  downstream: HttpDownstream,
  api: SessionsApi,
  gateway: GatewayContext,
): Promise<ApiAnswer> {
  const { user, attributes } = await admit(incoming, gateway);
  const { name: userName } = user;
  const { method, url, headers, trail } = incoming;
  const { searchParams: query, pathname: path } = url;
  const body =
    method === "DELETE" ? await readJson(downstream, gateway.timeouts.requestBodyMs) : ignored(downstream);
  if (typeof body === "object" && body !== null) trail?.requested(body);
  const given = query.get("reason") ?? query.get(REASON_QUERY);
  const reason = reasonOf(headerValue(headers, REASON_HEADER), given);
  if (reason !== "") trail?.annotate("sluice.dev/reason", reason);
  const accept = headerValue(headers, "accept") ?? "";
  const isFrontProxy = frontProxyNames(gateway.authenticator);
  if (method === "GET" && headers.some(([name]) => isFrontProxy(name))) {
    const discovery = answerAggregator(path, accept);
    if (discovery !== undefined) return discovery;
  }
  const range = headerValue(headers, "range") ?? "";
  const requireRequester = requesterCheckOf(incoming, user, gateway);
  const require = async (current: RequestUser, authorizer: Pick<Authorizer, "authorize">): Promise<void> => {
    await requireRequester(current, authorizer);
    await requirePermission(authorizer, { ...attributes, user: current });
  };
  if (attributes.subresource === "content") abortOnceRevoked("download", user, require, downstream, gateway);
  const standing = new SessionStanding(user, gateway.authorizer, require);
  const what = attributes.verb === "watch" ? "watch" : "view";
  const follow: FollowUser = (end) => {
    const cut: RunningSession["cut"] = (cause, _message, status) => {
      trail?.annotate("sluice.dev/ended-by", "gateway");
      trail?.annotate("sluice.dev/end-cause", cause);
      trail?.annotate("sluice.dev/end-code", String(status?.code));
      end({ ...STATUS, ...status });
    };
    return gateway.reauthorizer?.follow({ cut }, standing, what) ?? (() => {});
  };
  const asked = { method, path, query, accept, userName, reason, body, range, follow };
  return await api.answer(asked);
}

/** The user, if it may do what the request asks. Throws StatusError. */
async function admit(incoming: IncomingStreaming, gateway: GatewayContext) {
  const user = await identify(incoming, gateway);
  const { method, url } = incoming;
  const authorizer = authorizerFor(incoming, gateway.authorizer);
  const attributes = requestAttributes(user, { method, path: url.pathname, query: url.searchParams });
  await requirePermission(authorizer, attributes);
  return { user, attributes };
}

function ignored(downstream: HttpDownstream): undefined {
  downstream.body.resume();
}

/**
 * Joins a running session over WebSocket. The joiner needs `get` and `create` of
 * streamingsessions/attach, and the rights that opening the session itself needs. Throws
 * StatusError and HandshakeRefusal.
 */
async function joinSession(
  incoming: IncomingStreaming,
  client: PendingClient,
  api: SessionsApi,
  gateway: GatewayContext,
): Promise<void> {
  const { trail, url } = incoming;
  const user = await identify(incoming, gateway);
  const authorizer = authorizerFor(incoming, gateway.authorizer);
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
        unfollow = gateway.reauthorizer?.follow(life, standing, "join");
        gateway.logger.info({ session: fields }, "session joined");
      },
      onOver: () => {
        unfollow?.();
        release();
      },
      onReport: (report) => {
        annotateEnd(trail, report);
        const { message, ...end } = report;
        gateway.logger.info({ session: fields, ...end, reason: message }, "join ended");
      },
    });
  } catch (error) {
    release();
    throw error;
  }
}

type RequireRight = (user: RequestUser, authorizer: Pick<Authorizer, "authorize">) => Promise<void>;

/**
 * The rights that a joiner needs, at the start and during the join. Each function throws
 * StatusError.
 */
function rightsOf({ method, url }: IncomingStreaming, { gates }: Pick<GatewayContext, "gates">) {
  const line = { method, path: url.pathname, query: url.searchParams };
  const isGateOn = gates.isEnabled("AuthorizePodWebsocketUpgradeCreatePermission");
  const attach: RequireRight = async (user, authorizer) => {
    const attributes = requestAttributes(user, line);
    await requirePermission(authorizer, attributes);
    await requireCreatePermission(authorizer, attributes, isGateOn);
  };
  /** A user without the right to open such a session must not get one through another user's. */
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
  // The pod could have any labels.
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
