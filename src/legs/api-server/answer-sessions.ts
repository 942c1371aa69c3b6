import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { headerValue } from "@sluice/client/internal/http/header-list";
import { frontProxyNames } from "../../access/authn/identity-headers.ts";
import { requirePermission } from "../../access/authz/authorizer.ts";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import { REASON_HEADER, REASON_QUERY, reasonOf } from "../../access/policy/require-policy.ts";
import type { ApiAnswer } from "../../api/read-only-server/api-answer.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { isAttachPath, isOutputPath } from "../../listeners/exchange-times.ts";
import { readJson } from "../../listeners/request-body.ts";
import { answerAggregator, isAggregator } from "../../session-api/discovery.ts";
import { isSessionsPath, type SessionsApi } from "../../session-api/sessions-api.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import { SessionStanding } from "../../sessions/reauthorizer.ts";
import { identify, requesterCheckOf } from "./admit-streaming.ts";
import { recordAnswer, sendAnswer } from "./answer-from-cluster.ts";
import type { OtherRequests } from "./api-server.ts";
import { joinSession } from "./join-session.ts";
import { jsonClausesOf, withGroupAdded } from "./merge-discovery.ts";

/** Answers the API group of sessions, and adds it to the discovery of all groups. Others get the rest. */
export function withSessionsApi(
  others: OtherRequests,
  api: SessionsApi,
  gateway: GatewayContext,
): OtherRequests {
  return {
    async handleRequest(incoming, downstream): Promise<void> {
      const { method, url } = incoming;
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
      const jsonForms = method === "GET" && url.pathname === "/apis" ? jsonClausesOf(accept) : undefined;
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

/** Throws StatusError. The header alone says nothing: the front proxy's certificate has to come with it. */
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
  const standing = new SessionStanding(user, gateway.authorizer, async (current, authorizer) => {
    await requireRequester(current, authorizer);
    await requirePermission(authorizer, { ...attributes, user: current });
  });
  const follow = (cut: () => void): (() => void) =>
    gateway.reauthorizer?.follow({ cut }, standing) ?? (() => {});
  const asked = { method, path, query, accept, userName, reason, body, range, follow };
  return await api.answer(asked);
}

/** The user, if allowed to do what the request says. Throws StatusError. */
async function admit(incoming: IncomingStreaming, gateway: GatewayContext) {
  const user = await identify(incoming, gateway);
  const { method, url, trail } = incoming;
  const authorizer = trail?.watching(gateway.authorizer) ?? gateway.authorizer;
  const attributes = requestAttributes(user, { method, path: url.pathname, query: url.searchParams });
  await requirePermission(authorizer, attributes);
  return { user, attributes };
}

function ignored(downstream: HttpDownstream): undefined {
  downstream.body.resume();
}
