import type { HeaderList } from "@sluice/client/internal/http/header-list";
import { connectThroughProxy, proxyServerOf } from "@sluice/client/internal/http/proxies/proxy-connection";
import { HttpUpstream } from "@sluice/client/internal/http/upstream/http-upstream";
import type { Kubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import { addressOfUrl } from "@sluice/client/internal/net/dial";
import { UpstreamTls } from "@sluice/client/internal/net/tls";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { LiveApi } from "../config/sections/cluster.ts";
import type { UpstreamTlsFiles } from "../net/upstream-tls-files.ts";
import type { ApiClient } from "./api-client.ts";

/** The real API server, and the gateway's identity there. */
export interface ApiServerUpstream {
  /** Read this for each request, because certificates may rotate. */
  readonly upstream: HttpUpstream;
  /** The API server's base path: `/k8s/clusters/c1`. */
  readonly pathPrefix?: string;
  /** The gateway's credentials for impersonating requests, apart from a client certificate. */
  readonly ownCredentials?: { headers(): Promise<HeaderList>; forget(): void } | undefined;
  /**
   * The gateway connects with a client certificate, so it must impersonate the caller. Otherwise
   * every caller would have the gateway's own rights.
   */
  readonly impersonates: boolean;
  /**
   * The account may only use constrained impersonation (KEP-5284): of service accounts and nodes,
   * each by its exact name.
   */
  readonly isConstrained?: boolean;
  /** Impersonated requests name the requester in an extra of the user. */
  readonly namesRequester?: boolean;
}

/** The configured API server, if there is one. Throws ConfigurationError for invalid files. */
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

/** Forwards other requests to the live API's server. */
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
  // On a connection with our certificate, the API server would take every caller for the gateway.
  const { isTls, ...address } = addressOfUrl(kubeconfig.server);
  let read = kubeconfig.tls;
  const tls = isTls ? new UpstreamTls(withoutCertificate(read)) : undefined;
  const upstream = new HttpUpstream({
    endpoint: { ...address, tls },
    dialTimeoutMs,
    connect: connectorOf(kubeconfig),
  });
  return {
    get upstream() {
      // The gateway's own requests read the kubeconfig's files again, and fail if they are invalid.
      if (kubeconfig.tls !== read) {
        read = kubeconfig.tls;
        try {
          tls?.replace(withoutCertificate(read));
        } catch {
          // The old authorities stay.
        }
      }
      return upstream;
    },
    pathPrefix,
    impersonates: false,
    close: () => upstream.close(),
  };
}

function withoutCertificate({ ca, serverName, insecureSkipVerify }: Kubeconfig["tls"]) {
  return { ca, serverName, insecureSkipVerify };
}

/** A connection through the kubeconfig's proxy; undefined without one. */
export function connectorOf(
  kubeconfig: Pick<Kubeconfig, "proxyUrl" | "tls">,
): ConstructorParameters<typeof HttpUpstream>[0]["connect"] {
  const { proxyUrl } = kubeconfig;
  if (proxyUrl === undefined) return undefined;
  const current = () => {
    const { tls } = kubeconfig;
    return { tls, proxy: proxyServerOf(new URL(proxyUrl), tls.ca?.toString(), tls.insecureSkipVerify) };
  };
  let last = current();
  return async (endpoint, options) => {
    if (last.tls !== kubeconfig.tls) last = current();
    return await connectThroughProxy(last.proxy, endpoint, options);
  };
}
