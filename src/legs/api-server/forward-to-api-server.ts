import type { UserInfo } from "../../access/authn/authenticator.ts";
import {
  badRequest,
  genericError,
  internalError,
  type StatusError,
  serviceUnavailable,
} from "../../api/status.ts";
import { forwardUpgrade } from "../../http/forward-upgrade.ts";
import { withForwardedFor } from "../../http/forwarded-headers.ts";
import { type HeaderLine, type HeaderList, withHeader } from "../../http/header-list.ts";
import { forwardExchange } from "../../http/http-forwarder.ts";
import type { HttpUpstream } from "../../http/http-upstream.ts";
import type { IncomingStreaming } from "../../listeners/incoming-request.ts";
import type { OtherRequests } from "../../listeners/server.ts";
import { writeStatus } from "../../listeners/write-status.ts";
import { joinHostPort } from "../../net/go-dial-error.ts";
import { UpstreamError } from "../../net/upstream-error.ts";
import type { GatewayContext } from "../../sessions/context.ts";
import { type AdmittedProxied, admitProxied } from "./admit-proxied.ts";
import { carryForwarded } from "./carry-forwarded.ts";
import { identify } from "./identify.ts";
import { withoutFrontProxy, withoutIdentity } from "./identity-headers.ts";

export interface ApiServerUpstream {
  /** Of the moment: certificates may be replaced while we run. */
  readonly upstream: HttpUpstream;
  /** Where the API server is mounted below a path: `/k8s/clusters/c1`. */
  readonly pathPrefix?: string;
  /** Our own credentials besides a client certificate, for requests in another's name. */
  readonly ownCredentials?: { headers(): Promise<HeaderList>; forget(): void } | undefined;
  /**
   * The gateway has a client certificate there. Then it must say for whom it speaks, by impersonation: otherwise every
   * caller would act with the gateway's own rights.
   */
  readonly impersonates: boolean;
}

/** Everything that is not a streaming subresource goes to the real API server, bodies, watches and upgrades alike. */
export function forwardToApiServer(gateway: GatewayContext, apiServer: ApiServerUpstream): OtherRequests {
  const { impersonates, ownCredentials, pathPrefix = "" } = apiServer;
  const { endpoint } = apiServer.upstream;
  const authority = joinHostPort(endpoint.host, endpoint.port);

  const editorFor = async (
    incoming: IncomingStreaming,
    admitted: AdmittedProxied | undefined,
  ): Promise<(headers: HeaderList) => HeaderLine[]> => {
    const user = impersonates ? (admitted?.user ?? (await identify(incoming, gateway))) : undefined;
    const own = user === undefined ? [] : await ownLines(ownCredentials, gateway);
    return (headers) => {
      const forwarded = withForwardedFor(withHeader(headers, "Host", authority), {
        peerAddress: incoming.remoteAddress,
        isPeerTrusted: incoming.isPeerTrusted ?? false,
      });
      return user === undefined
        ? forwarded
        : [...impersonating(withoutFrontProxy(forwarded, gateway.authenticator), user), ...own];
    };
  };

  return {
    async handleRequest(incoming, downstream): Promise<void> {
      const admitted = await admitProxied(incoming, false, gateway);
      if (admitted !== undefined) downstream.onClose(admitted.release);
      const editHeaders = await editorFor(incoming, admitted);
      await forwardExchange(downstream, {
        upstream: apiServer.upstream,
        path: pathPrefix + incoming.target,
        editHeaders,
        editResponseHeaders: (headers, status) => {
          // Our own token may have been replaced; the caller is told what the API server said.
          if (status === 401 && impersonates) ownCredentials?.forget();
          return headers;
        },
        respondError: (error) => writeStatus(downstream, forwardingError(error).status),
      });
    },
    async handleUpgrade(incoming, client): Promise<void> {
      const admitted = await admitProxied(incoming, true, gateway);
      const places = [admitted?.release];
      const giveBack = () => {
        for (const release of places.splice(0)) release?.();
      };
      let isCarried = false;
      try {
        const editHeaders = await editorFor(incoming, admitted);
        places.push(gateway.sessions.admit());
        await forwardUpgrade(client, {
          endpoint: apiServer.upstream.endpoint,
          method: incoming.method,
          path: pathPrefix + incoming.target,
          headers: incoming.headers,
          editHeaders,
          dialTimeoutMs: gateway.timeouts.dialMs,
          responseHeaderTimeoutMs: gateway.timeouts.upgradeResponseMs,
          maxResponseHeadBytes: gateway.limits.maxUpgradeResponseHeadBytes,
          carry: (downstream, answered) => {
            isCarried = true;
            carryForwarded(
              downstream,
              answered,
              { ...gateway, timeouts: { ...gateway.timeouts, ...admitted?.timeouts } },
              giveBack,
            );
          },
        });
      } catch (error) {
        if (!(error instanceof UpstreamError) || error.code === "aborted") throw error;
        throw forwardingError(error);
      } finally {
        // A refusal is an answer as well, and ends what was admitted.
        if (!isCarried) giveBack();
      }
    },
  };
}

/** Only who we are: a kubeconfig's own impersonation would stand beside the caller's. Why there is nothing is for the log. */
async function ownLines(
  credentials: ApiServerUpstream["ownCredentials"],
  { logger }: GatewayContext,
): Promise<HeaderList> {
  try {
    const lines = (await credentials?.headers()) ?? [];
    return lines.filter(([name]) => name === "Authorization");
  } catch (error) {
    logger.error({ error }, "there are no credentials for the API server");
    throw serviceUnavailable("the gateway has no credentials for the API server");
  }
}

/** What the caller is told of an API server that gave no answer. */
export function forwardingError(error: UpstreamError): StatusError {
  if (error.code === "upgrade-refused" || error.code === "invalid-request") return badRequest(error.message);
  if (error.code === "internal-error") return internalError("the gateway failed to handle the request");
  if (error.code === "dial-failed")
    return serviceUnavailable(`error trying to reach the API server: ${error.message}`);
  return genericError(502, `error trying to reach the API server: ${error.message}`);
}

/** Who the caller is, in the gateway's name. What the caller itself claims to be is dropped first. */
function impersonating(headers: HeaderList, user: UserInfo): HeaderLine[] {
  const lines: HeaderLine[] = [["Impersonate-User", user.name]];
  if (user.uid !== "") lines.push(["Impersonate-Uid", user.uid]);
  for (const group of user.groups) lines.push(["Impersonate-Group", group]);
  for (const [key, values] of Object.entries(user.extra)) {
    for (const value of values) lines.push([`Impersonate-Extra-${encodeURIComponent(key)}`, value]);
  }
  // One character a byte, as header values are written: names are UTF-8.
  const encoded = lines.map(([name, value]): HeaderLine => [name, Buffer.from(value).toString("latin1")]);
  return [...withoutIdentity(headers), ...encoded];
}
