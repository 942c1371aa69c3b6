import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import { addTrace } from "@sluice/client/internal/http/trace-headers";
import { isHttp2Stream } from "@sluice/client/internal/net/abort-socket";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { frontProxyNames, withoutIdentity } from "../../access/authn/identity-headers.ts";
import type { RequestUser } from "../../access/authn/impersonation.ts";
import { addForwardedFor } from "../../http/forwarded-headers.ts";
import { forwardUpgrade } from "../../http/upgrade/forward-upgrade.ts";
import { forwardExchange } from "../../http/upstream/http-forwarder.ts";
import type { ApiServerUpstream } from "../../kubernetes/api-server-upstream.ts";
import { exchangeTimesOf } from "../../listeners/exchange-times.ts";
import { writeStatus } from "../../listeners/write-answer.ts";
import { carryForwarded } from "../../sessions/carry-forwarded.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import type { PendingClient } from "../../sessions/pending-client.ts";
import { forwardingError } from "../../sessions/upstream-errors.ts";
import { AcceptedCredentials } from "./accepted-credentials.ts";
import { type AdmittedProxied, admitProxied } from "./admit-proxied.ts";
import type { OtherRequests } from "./api-server.ts";
import { identify } from "./identify.ts";
import { answerKnownPod, KNOWN_POD_ANSWER_MS, readsKnownPod } from "./known-pod.ts";
import { ProxiedRecord } from "./proxied-record.ts";
import { impersonationLines } from "./user-lines.ts";

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
    await forwardExchange(downstream, {
      upstream,
      path: this.#pathOf(incoming),
      ...exchangeTimesOf(incoming.target, gateway.timeouts),
      ...(isKnownPod && { responseHeaderTimeoutMs: KNOWN_POD_ANSWER_MS }),
      editHeaders,
      editResponseHeaders: (edit, status) => {
        // Our own token may have been replaced; the caller gets the API server's answer.
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
          carryForwarded(downstream, answered, { ...gateway, timeouts: times }, owner);
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
      // A refusal is an answer, too, and releases the session's seats.
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
      // These headers need a front proxy's certificate, which is not forwarded: without it they are
      // a caller's claim (decision 0034).
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
  gateway: GatewayContext,
): () => Promise<RequestUser> {
  let user: Promise<RequestUser> | undefined;
  return () => {
    user ??= admitted === undefined ? identify(incoming, gateway) : Promise.resolve(admitted.user);
    return user;
  };
}
