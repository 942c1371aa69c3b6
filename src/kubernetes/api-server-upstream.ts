import type { GatewayConfiguration } from "../config/configuration.ts";
import type { LiveApi } from "../config/sections/cluster.ts";
import type { HeaderList } from "../http/header-list.ts";
import { connectThroughProxy, proxyServerOf } from "../http/proxies/proxy-connection.ts";
import { HttpUpstream } from "../http/upstream/http-upstream.ts";
import { addressOfUrl } from "../net/endpoint-of-url.ts";
import { UpstreamTls } from "../net/tls.ts";
import type { UpstreamTlsFiles } from "../net/upstream-tls-files.ts";
import type { ApiClient } from "./api-client.ts";
import type { Kubeconfig } from "./kubeconfig.ts";

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
export async function upstreamApiServerOf(
  { upstreamAPIServer, timeouts }: Pick<GatewayConfiguration, "upstreamAPIServer" | "timeouts">,
  upstreams: UpstreamTlsFiles,
): Promise<(ApiServerUpstream & { close(): void }) | undefined> {
  if (upstreamAPIServer === undefined) return undefined;
  const endpoint = await upstreams.endpoint("upstreamAPIServer", upstreamAPIServer.url, upstreamAPIServer);
  const upstream = new HttpUpstream({ endpoint, dialTimeoutMs: timeouts.dialMs });
  const { clientCertificateFile, impersonation, nameRequester } = upstreamAPIServer;
  return {
    upstream,
    impersonates: clientCertificateFile !== undefined,
    isConstrained: impersonation === "constrained",
    namesRequester: nameRequester,
    close: () => upstream.close(),
  };
}

/** The live API of a kubeconfig as the server that other requests go to. */
export function forwardingTo(
  kubeconfig: Kubeconfig,
  client: ApiClient,
  { forwardAs, impersonation, nameRequester }: LiveApi,
  dialTimeoutMs: number,
): ApiServerUpstream & { close(): void } {
  const pathPrefix = new URL(kubeconfig.server).pathname.replace(/(?<!\/)\/+$/, "");
  if (forwardAs === "impersonate") {
    return {
      get upstream() {
        return client.upstream;
      },
      pathPrefix,
      impersonates: true,
      isConstrained: impersonation === "constrained",
      namesRequester: nameRequester,
      ownCredentials: kubeconfig,
      close: () => {},
    };
  }
  // With our certificate on the connection the API server would take every caller for us.
  const { isTls, ...address } = addressOfUrl(kubeconfig.server);
  const { ca, serverName, insecureSkipVerify } = kubeconfig.tls;
  const tls = isTls ? new UpstreamTls({ ca, serverName, insecureSkipVerify }) : undefined;
  const upstream = new HttpUpstream({
    endpoint: { ...address, tls },
    dialTimeoutMs,
    connect: connectorOf(kubeconfig),
  });
  return { upstream, pathPrefix, impersonates: false, close: () => upstream.close() };
}

/** Through the kubeconfig's proxy; undefined where it names none. */
export function connectorOf({
  proxyUrl,
  tls,
}: Kubeconfig): ConstructorParameters<typeof HttpUpstream>[0]["connect"] {
  if (proxyUrl === undefined) return undefined;
  const proxy = proxyServerOf(new URL(proxyUrl), tls.ca?.toString(), tls.insecureSkipVerify);
  return (endpoint, options) => connectThroughProxy(proxy, endpoint, options);
}
