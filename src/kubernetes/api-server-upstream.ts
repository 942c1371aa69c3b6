import type { GatewayConfiguration } from "../config/configuration.ts";
import type { HeaderList } from "../http/header-list.ts";
import { HttpUpstream } from "../http/http-upstream.ts";
import { endpointOfUrl } from "../net/endpoint-of-url.ts";

/** The real API server, and the gateway's identity there. */
export interface ApiServerUpstream {
  /** Of the moment: certificates may be replaced while we run. */
  readonly upstream: HttpUpstream;
  /** Where the API server is mounted below a path: `/k8s/clusters/c1`. */
  readonly pathPrefix?: string;
  /** Our own credentials besides a client certificate, for requests in another's name. */
  readonly ownCredentials?: { headers(): Promise<HeaderList>; forget(): void } | undefined;
  /**
   * The gateway has a client certificate there. Then it must impersonate the caller: otherwise every
   * caller would act with the gateway's own rights.
   */
  readonly impersonates: boolean;
  /** It may do so by constrained impersonation (KEP-5284) alone: service accounts and nodes by their name and nothing else. */
  readonly isConstrained?: boolean;
  /** The requester of an impersonated request is named to it, as an extra of the user. */
  readonly namesRequester?: boolean;
}

/** The API server that the configuration names; undefined where it names none. Throws ConfigurationError for files that are wrong. */
export async function upstreamApiServerOf({
  upstreamAPIServer,
  timeouts,
}: Pick<GatewayConfiguration, "upstreamAPIServer" | "timeouts">): Promise<
  (ApiServerUpstream & { close(): void }) | undefined
> {
  if (upstreamAPIServer === undefined) return undefined;
  const endpoint = await endpointOfUrl(upstreamAPIServer.url, upstreamAPIServer);
  const upstream = new HttpUpstream({ endpoint, dialTimeoutMs: timeouts.dialMs });
  const impersonates = upstreamAPIServer.clientCertificateFile !== undefined;
  return { upstream, impersonates, close: () => upstream.close() };
}
