import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { headerValue } from "@sluice/client/internal/http/header-list";
import type { RequestUser } from "../../access/authn/impersonation.ts";
import { type Authorizer, authorizerFor, requirePermission } from "../../access/authz/authorizer.ts";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import { answerReview } from "../../access/authz/reviews/answer-review.ts";
import { answerApiRequest, type ReadOnlyApiOptions } from "../../api/read-only-server/answer-api-request.ts";
import { type ApiAnswer, jsonAnswer } from "../../api/read-only-server/api-answer.ts";
import { reviewAt } from "../../api/read-only-server/resources.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { waitForDrain, writeAnswer } from "../../listeners/answer.ts";
import { readReview } from "../../listeners/request-body.ts";
import type {
  AccessContext,
  ClusterContext,
  GatewayContext,
  SessionRunContext,
} from "../../sessions/context.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import { SessionStanding } from "../../sessions/reauthorizer.ts";
import { identify, requesterCheckOf } from "./admit-streaming.ts";
import type { OtherRequests } from "./api-server.ts";
import { answerPodLog, matchPodLogPath } from "./pod-log.ts";

/**
 * Kubernetes' role system:public-info-viewer lets everyone read these paths, authenticated or not.
 */
const PUBLIC_PATHS: readonly string[] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/** Without an API server, the gateway answers the read-only requests that kubectl makes before it streams. */
export function answerFromCluster(gateway: GatewayContext, gitVersion: string): OtherRequests {
  const options = readOnlyOptions(gateway, gitVersion);
  return {
    async handleRequest(incoming, downstream): Promise<void> {
      const user = await requireReader(incoming, gateway);
      const review = incoming.method === "POST" ? reviewAt(incoming.url.pathname) : undefined;
      if (review !== undefined && user !== undefined) {
        const posted = await readReview(downstream, gateway.timeouts.requestBodyMs);
        if (typeof posted === "object" && posted !== null) incoming.trail?.requested(posted);
        const answer = jsonAnswer(await answerReview(review, posted, user, gateway.authorizer));
        recordAnswer(answer, incoming);
        return await sendAnswer({ ...answer, status: 201 }, downstream);
      }
      downstream.body.resume();
      const { pathname, searchParams } = incoming.url;
      const logPath = matchPodLogPath(pathname);
      if (logPath !== undefined) {
        if (user !== undefined) followReader(incoming, user, downstream, gateway);
        return await answerPodLog(logPath, incoming.method, searchParams, downstream, gateway);
      }
      const accept = headerValue(incoming.headers, "accept") ?? "";
      const apiRequest = { method: incoming.method, path: pathname, query: searchParams, accept };
      const answer = answerApiRequest(apiRequest, gateway.cluster, options);
      if (answer === undefined) throw WIRE_ERRORS["path-unknown"].streaming();
      recordAnswer(answer, incoming);
      await sendAnswer(answer, downstream);
    },
    async handleUpgrade(incoming): Promise<void> {
      await requireReader(incoming, gateway);
      throw WIRE_ERRORS["upgrade-elsewhere"].streaming();
    },
  };
}

export function readOnlyOptions(
  gateway: ClusterContext & SessionRunContext,
  gitVersion: string,
): ReadOnlyApiOptions {
  return {
    version: { gitVersion, runtime: process.version, platform: `${process.platform}/${goArchitecture()}` },
    now: () => new Date(),
    isReady: () => !gateway.sessions.isDraining,
  };
}

/** The authorized user; undefined if the path needs none. */
async function requireReader(
  incoming: IncomingStreaming,
  gateway: AccessContext,
): Promise<RequestUser | undefined> {
  if (PUBLIC_PATHS.includes(incoming.url.pathname)) return undefined;
  const user = await identify(incoming, gateway);
  const { method, url } = incoming;
  const line = { method, path: url.pathname, query: url.searchParams };
  await requirePermission(
    authorizerFor({ source: incoming.source }, gateway.authorizer),
    requestAttributes(user, line),
  );
  return user;
}

/** Ends a log once its reader may no longer read it. */
function followReader(
  incoming: IncomingStreaming,
  user: RequestUser,
  downstream: HttpDownstream,
  gateway: GatewayContext,
): void {
  const { method, url } = incoming;
  const line = { method, path: url.pathname, query: url.searchParams };
  const requireRequester = requesterCheckOf(incoming, user, gateway);
  const require = async (now: RequestUser, authorizer: Pick<Authorizer, "authorize">): Promise<void> => {
    await requireRequester(now, authorizer);
    await requirePermission(authorizer, requestAttributes(now, line));
  };
  abortOnceRevoked("log", user, require, downstream, gateway);
}

/** Go's name for the machine's architecture, as Kubernetes reports it. */
function goArchitecture(): string {
  return process.arch === "x64" ? "amd64" : process.arch;
}

/** For audit. A watch has no single answer to record. */
export function recordAnswer({ body, headers }: ApiAnswer, { trail }: IncomingStreaming): void {
  const isJson = headers["Content-Type"]?.startsWith("application/json");
  if (isJson && body instanceof Uint8Array) trail?.responding(body);
}

/**
 * Aborts an answer that has no room for a Status, such as a log, once its user may no longer read it.
 * `require` throws the error that a refused request gets.
 */
export function abortOnceRevoked(
  what: "download" | "log",
  user: RequestUser,
  require: ConstructorParameters<typeof SessionStanding<RequestUser>>[2],
  downstream: HttpDownstream,
  { authorizer, logger, reauthorizer }: GatewayContext,
): void {
  const cut = (_cause: string, message: string): void => {
    logger.info({ user: user.name, reason: message }, "answer aborted");
    downstream.abort();
  };
  const standing = new SessionStanding(user, authorizer, require);
  downstream.onClose(reauthorizer?.follow({ cut }, standing, what) ?? (() => {}));
}

/** Writes an answer; resolves when a watch ends or its client has left. */
export async function sendAnswer(
  { status, headers, body }: ApiAnswer,
  downstream: HttpDownstream,
): Promise<void> {
  const lines = Object.entries(headers);
  if (body instanceof Uint8Array) return writeAnswer(downstream, status, lines, body);
  // Sends each watch event at once. Releases the source when the client leaves, or has left during
  // authentication.
  const sink = downstream.respond(status, "OK", [...lines, ["Date", new Date().toUTCString()]]);
  const iterator = body[Symbol.asyncIterator]();
  downstream.onClose(() => void iterator.return?.());
  for (;;) {
    const { value, done } = await iterator.next();
    if (done || sink.destroyed) break;
    if (!sink.write(value)) await waitForDrain(sink);
  }
  downstream.finish([]);
}
