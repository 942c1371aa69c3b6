import { StatusError } from "@sluice/client/internal/api/status";
import { CLAIMED_KUBERNETES_VERSION } from "@sluice/client/internal/config/version";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import { headerValue } from "@sluice/client/internal/http/header-list";
import { addTrace } from "@sluice/client/internal/http/trace-headers";
import { isHttp2Stream } from "@sluice/client/internal/net/abort-socket";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { frontProxyNames, withoutIdentity } from "../../access/authn/identity-headers.ts";
import type { RequestUser } from "../../access/authn/impersonation.ts";
import { authorizerFor, requirePermission } from "../../access/authz/authorizer.ts";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import type { UserInfo } from "../../access/user-info.ts";
import { answerApiRequest } from "../../api/read-only-server/answer-api-request.ts";
import { requireFresh, SESSION_KINDS } from "../../cluster/cluster.ts";
import { addForwardedFor } from "../../http/forwarded-headers.ts";
import { forwardUpgrade } from "../../http/upgrade/forward-upgrade.ts";
import { forwardExchange } from "../../http/upstream/http-forwarder.ts";
import type { ApiServerUpstream } from "../../kubernetes/api-server-upstream.ts";
import { writeAnswer, writeStatus } from "../../listeners/answer.ts";
import { exchangeTimesOf } from "../../listeners/exchange-times.ts";
import { carryForwarded } from "../../sessions/carry-forwarded.ts";
import type { AccessContext, ClusterContext, GatewayContext } from "../../sessions/context.ts";
import type { IncomingStreaming, PendingClient } from "../../sessions/incoming-request.ts";
import { forwardingError } from "../../sessions/upstream-errors.ts";
import { AcceptedCredentials } from "./accepted-credentials.ts";
import { type AdmittedProxied, admitProxied } from "./admit-proxied.ts";
import { identify } from "./admit-streaming.ts";
import { readOnlyOptions } from "./answer-from-cluster.ts";
import type { OtherRequests } from "./api-server.ts";
import { noteEphemeralContainers } from "./ephemeral-containers.ts";
import { ProxiedRecord } from "./proxied-record.ts";
import { impersonationLines } from "./user-lines.ts";

/**
 * How long the API server has to answer for a pod that Sluice also knows. Past it Sluice answers,
 * with a Warning.
 */
const KNOWN_POD_ANSWER_MS = 10_000;

const POD_PATH = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)$/;

/** Whether this request reads one pod that Sluice watches; kubectl does so before each session. */
function readsKnownPod({ method, url }: IncomingStreaming, { cluster }: ClusterContext): boolean {
  const [, namespace, name] = POD_PATH.exec(url.pathname) ?? [];
  if (method !== "GET" || cluster.freshnessOf === undefined || url.searchParams.has("watch")) return false;
  return namespace !== undefined && name !== undefined && cluster.getPod(namespace, name) !== undefined;
}

/**
 * If the API server gives no answer, answers with the pod's last known state, marked by a Warning
 * (RFC 7234 section 5.5). The user needs permission to read it, and the state must not be older
 * than `cluster.maxStateAge`; otherwise the answer is `failure`.
 */
async function answerKnownPod(
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
    const { source } = incoming;
    await requirePermission(authorizerFor({ source }, gateway.authorizer), attributes);
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

/**
 * Forwards everything but streaming subresources to the real API server: bodies, watches and
 * upgrades alike.
 */
export function forwardToApiServer(gateway: GatewayContext, apiServer: ApiServerUpstream): OtherRequests {
  return new ApiServerForwarder(gateway, apiServer);
}

class ApiServerForwarder implements OtherRequests {
  readonly #gateway: GatewayContext;
  readonly #apiServer: ApiServerUpstream;
  readonly #authority: string;
  readonly #credentials = new AcceptedCredentials();

  constructor(gateway: GatewayContext, apiServer: ApiServerUpstream) {
    this.#gateway = gateway;
    this.#apiServer = apiServer;
    const { host, port } = apiServer.upstream.endpoint;
    this.#authority = joinHostPort(host, port);
  }

  async handleRequest(incoming: IncomingStreaming, downstream: HttpDownstream): Promise<void> {
    const gateway = this.#gateway;
    const { impersonates, ownCredentials, upstream } = this.#apiServer;
    const admitted = await admitProxied(incoming, false, gateway);
    if (admitted !== undefined) downstream.onClose(admitted.release);
    const userOf = userOnce(incoming, admitted, gateway);
    const editHeaders = await this.#editorFor(incoming, userOf);
    const caller = impersonates ? undefined : this.#credentials.callerOf(incoming);
    const passOn = caller && (await incoming.admit?.(caller.name, !caller.isAccepted));
    const isKnownPod = readsKnownPod(incoming, gateway);
    noteEphemeralContainers(incoming, downstream);
    await forwardExchange(downstream, {
      upstream,
      path: this.#pathOf(incoming),
      ...exchangeTimesOf(incoming.target, gateway.timeouts),
      ...(isKnownPod && { responseHeaderTimeoutMs: KNOWN_POD_ANSWER_MS }),
      editHeaders,
      editResponseHeaders: (edit, status) => {
        // Our own token may have been replaced; meanwhile the caller gets the API server's answer.
        if (status === 401 && impersonates) ownCredentials?.forget();
        const accepted = caller?.answered(status, edit);
        if (accepted !== undefined) passOn?.(accepted);
      },
      respondError: (error) => {
        const failure = forwardingError(error);
        if (isKnownPod && failure.code >= 502)
          void answerKnownPod(incoming, downstream, userOf, failure, gateway);
        else writeStatus(downstream, failure.status);
      },
    });
  }

  async handleUpgrade(incoming: IncomingStreaming, client: PendingClient): Promise<void> {
    const gateway = this.#gateway;
    const { limits, timeouts } = gateway;
    const { endpoint, connect } = this.#apiServer.upstream;
    const admitted = await admitProxied(incoming, true, gateway);
    const places = [admitted?.release];
    const giveBack = () => {
      for (const release of places.splice(0)) release?.();
    };
    const record = admitted && new ProxiedRecord(admitted, incoming, gateway, giveBack);
    let isCarried = false;
    try {
      const editHeaders = await this.#editorFor(incoming, userOnce(incoming, admitted, gateway));
      places.push(gateway.sessions.admit());
      const status = await forwardUpgrade(client, {
        endpoint,
        connect,
        method: incoming.method,
        path: this.#pathOf(incoming),
        headers: incoming.headers,
        trace: incoming.trace,
        editHeaders,
        dialTimeoutMs: timeouts.dialMs,
        responseHeaderTimeoutMs: timeouts.upgradeResponseMs,
        maxResponseHeadBytes: limits.maxUpgradeResponseHeadBytes,
        // An API server may ignore an upgrade. An HTTP/2 client would mistake its 200 for a
        // WebSocket.
        relayAnswersMs: isHttp2Stream(client.socket) ? undefined : timeouts.streamIdleMs,
        carry: (downstream, answered) => {
          isCarried = true;
          record?.start();
          const times = { ...timeouts, ...admitted?.timeouts };
          const owner = record ?? { onOver: giveBack };
          carryForwarded(downstream, answered, { ...gateway, timeouts: times }, owner, (life) => {
            if (admitted !== undefined) places.push(gateway.reauthorizer?.follow(life, admitted.standing));
          });
        },
      });
      if (!isCarried) record?.refused(status);
      incoming.trace?.end(status);
    } catch (error) {
      if (!(error instanceof UpstreamError) || error.code === "aborted") throw error;
      const failure = forwardingError(error);
      record?.refused(failure.code);
      throw failure;
    } finally {
      // A refusal is an answer as well, and releases the session's seats.
      if (!isCarried) giveBack();
    }
  }

  #pathOf({ target }: IncomingStreaming): string {
    return (this.#apiServer.pathPrefix ?? "") + target;
  }

  async #editorFor(
    incoming: IncomingStreaming,
    userOf: () => Promise<RequestUser>,
  ): Promise<(edit: HeaderEdit) => HeaderEdit> {
    const gateway = this.#gateway;
    const user = this.#apiServer.impersonates ? await userOf() : undefined;
    const named = user && (await impersonationLines(user, this.#apiServer, gateway));
    if (user?.requestedBy !== undefined) {
      const { method, url } = incoming;
      const { name, requestedBy } = user;
      gateway.logger.info({ method, path: url.pathname, user: name, requestedBy }, "request forwarded");
    }
    return (edit) => {
      // These headers need a front proxy's certificate, which is not forwarded. Without it they are
      // only a caller's claim (decision 0034).
      edit.dropIf(frontProxyNames(gateway.authenticator));
      addTrace(edit, incoming.trace);
      edit.set("Host", this.#authority);
      addForwardedFor(edit, {
        peerAddress: incoming.remoteAddress,
        isPeerTrusted: incoming.isPeerTrusted ?? false,
      });
      return named === undefined ? edit : new HeaderEdit([...withoutIdentity(edit.lines()), ...named]);
    };
  }
}

/** The request's user, identified and audited at most once. */
function userOnce(
  incoming: IncomingStreaming,
  admitted: AdmittedProxied | undefined,
  gateway: AccessContext,
): () => Promise<RequestUser> {
  let user: Promise<RequestUser> | undefined;
  return () => {
    user ??= admitted === undefined ? identify(incoming, gateway) : Promise.resolve(admitted.user);
    return user;
  };
}
