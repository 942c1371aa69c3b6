import { readFile } from "node:fs/promises";
import { addressOfUrl, dial } from "@sluice/client/internal/net/dial";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import type { EgressProxySettings } from "../../config/sections/kubelet.ts";
import { dialThroughProxy, type EgressProxy } from "../../http/proxies/egress-proxy.ts";
import { NodeAddresses, NodeAddressRefused, resolveByDns } from "../../net/node-address.ts";
import { type ReservedEndpoint, ReservedEndpoints } from "../../net/reserved-endpoints.ts";
import { SpareConnections } from "../../net/spare-connections.ts";
import type { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";
import type { Logger } from "../../observability/logger.ts";
import type { Metrics } from "../../observability/metrics.ts";
import type { KubeletOptions } from "../../sessions/context.ts";

/** Refused node addresses that are logged, each once. Past it they are only counted. */
const MAX_LOGGED_REFUSALS = 1_000;

/** Decides how to reach kubelets. `ownEndpoints`: this process' API-server addresses, read at each dial. */
export async function buildKubelet(
  { kubelet, upstreamAPIServer }: Pick<GatewayConfiguration, "kubelet" | "upstreamAPIServer">,
  ownEndpoints: () => readonly ReservedEndpoint[],
  upstreams: UpstreamTlsFiles,
  { metrics, logger }: { readonly metrics: Pick<Metrics, "nodes">; readonly logger: Pick<Logger, "warn"> },
): Promise<KubeletOptions> {
  const tls = kubelet.scheme === "https" ? await upstreams.tls("kubelet", kubelet) : undefined;
  const upstream = upstreamAPIServer && addressOfUrl(upstreamAPIServer.url);
  const reserved = new ReservedEndpoints({
    list: () => (upstream === undefined ? ownEndpoints() : [upstream, ...ownEndpoints()]),
    resolve: resolveByDns,
  });
  const addresses = new NodeAddresses(
    kubelet.allowedAddresses,
    resolveByDns,
    kubelet.allowAPIServerEndpoints ? undefined : reserved,
  );
  const proxy = kubelet.egressProxy && (await egressProxyOf(kubelet.egressProxy, upstreams));
  const connect: KubeletOptions["connect"] =
    proxy && ((endpoint, options) => dialThroughProxy(proxy, endpoint, options));
  const refused = new Set<string>();
  const refusedFor =
    (node: string) =>
    (error: unknown): never => {
      if (error instanceof NodeAddressRefused) {
        metrics.nodes.addressRefused();
        const key = `${node} ${error.message}`;
        if (!refused.has(key) && refused.size < MAX_LOGGED_REFUSALS)
          logger.warn(
            { node, reason: error.message },
            "a node's address is not dialled (kubelet.allowedAddresses)",
          );
        if (refused.size < MAX_LOGGED_REFUSALS) refused.add(key);
      }
      throw error;
    };
  const spares = new SpareConnections({ max: kubelet.spareConnections, dial: connect ?? dial });
  return {
    preferredAddressTypes: kubelet.preferredAddressTypes,
    defaultKubeletPort: kubelet.port,
    connect,
    ...(kubelet.spareConnections > 0 && { connectSession: spares.connect.bind(spares) }),
    endpointOf: async ({ name, host, port }) => ({
      host: await (proxy === undefined ? addresses.resolve(host, port) : addresses.check(host, port)).catch(
        refusedFor(name),
      ),
      port,
      tls,
      serverName: host,
      commonName: kubelet.verifyNodeName ? `system:node:${name}` : undefined,
    }),
  };
}

async function egressProxyOf(
  settings: EgressProxySettings,
  upstreams: UpstreamTlsFiles,
): Promise<EgressProxy> {
  const { url, credentialsFile } = settings;
  const { protocol, pathname } = new URL(url);
  return {
    server:
      protocol === "unix:"
        ? { socketPath: decodeURIComponent(pathname) }
        : await upstreams.endpoint("egressProxy", url, settings),
    authorization:
      credentialsFile === undefined
        ? undefined
        : async () =>
            `Basic ${Buffer.from((await readFile(credentialsFile, "utf8")).trim()).toString("base64")}`,
  };
}
