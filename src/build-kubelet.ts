import type { GatewayConfiguration } from "./config/configuration.ts";
import type { KubeletOptions } from "./gateway/context.ts";
import { endpointOfUrl, readUpstreamTls } from "./upstream/endpoint-of-url.ts";
import { NodeAddresses, resolveByDns } from "./upstream/node-address.ts";
import { type ReservedEndpoint, ReservedEndpoints } from "./upstream/reserved-endpoints.ts";

/** How kubelets are reached. `ownEndpoints`: where this process listens as an API server, asked when a node is dialled. */
export async function buildKubelet(
  { kubelet, upstreamAPIServer }: Pick<GatewayConfiguration, "kubelet" | "upstreamAPIServer">,
  ownEndpoints: () => readonly ReservedEndpoint[],
): Promise<KubeletOptions> {
  const tls = kubelet.scheme === "https" ? await readUpstreamTls(kubelet) : undefined;
  const upstream = upstreamAPIServer && (await endpointOfUrl(upstreamAPIServer.url, upstreamAPIServer));
  const reserved = new ReservedEndpoints({
    list: () => (upstream === undefined ? ownEndpoints() : [upstream, ...ownEndpoints()]),
    resolve: resolveByDns,
  });
  const addresses = new NodeAddresses(
    kubelet.allowedAddresses,
    resolveByDns,
    kubelet.allowAPIServerEndpoints ? undefined : reserved,
  );
  return {
    preferredAddressTypes: kubelet.preferredAddressTypes,
    defaultKubeletPort: kubelet.port,
    endpointOf: async ({ name, host, port }) => ({
      host: await addresses.resolve(host, port),
      port,
      tls,
      serverName: host,
      commonName: kubelet.verifyNodeName ? `system:node:${name}` : undefined,
    }),
  };
}
