import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { readUpTo } from "@sluice/client/internal/config/named-file-text";
import { addressOfUrl, dial, isHost } from "@sluice/client/internal/net/dial";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { dialThroughProxy, type EgressProxy } from "../../http/proxies/egress-proxy.ts";
import { AddressRules, type ReservedEndpoint, ReservedEndpoints } from "../../net/address-rules.ts";
import { SpareConnections } from "../../net/spare-connections.ts";
import type { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";
import type { Logger } from "../../observability/logger.ts";
import type { Metrics } from "../../observability/metrics.ts";
import type { KubeletOptions } from "../../sessions/context.ts";

const MAX_QUOTED_CHARACTERS = 80;

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
  settings: NonNullable<GatewayConfiguration["kubelet"]["egressProxy"]>,
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
            `Basic ${Buffer.from((await readUpTo(credentialsFile)).toString().trim()).toString("base64")}`,
  };
}

class NodeAddressRefused extends Error {
  override readonly name = "NodeAddressRefused";
}

/**
 * Resolves a Node object's address once, checks the IP and dials exactly that one, so that a second
 * DNS answer cannot lead elsewhere (CVE-2020-8562, CVE-2022-3294).
 */
export class NodeAddresses {
  readonly #rules: AddressRules;
  readonly #resolve: typeof resolveByDns;
  readonly #reserved: Pick<ReservedEndpoints, "has"> | undefined;

  /**
   * `allowed`: networks that are dialled although they are forbidden by default. `reserved`: endpoints
   * that are never a node's, even in allowed networks.
   */
  constructor(
    allowed: readonly string[],
    resolve: typeof resolveByDns = resolveByDns,
    reserved?: Pick<ReservedEndpoints, "has">,
  ) {
    this.#rules = new AddressRules(allowed);
    this.#resolve = resolve;
    this.#reserved = reserved;
  }

  /** Throws NodeAddressRefused if any address of the name is forbidden. Lookup errors pass through. */
  async resolve(host: string, port: number): Promise<string> {
    requireHost(host);
    const addresses = isIP(host) === 0 ? await this.#resolve(host) : [host];
    for (const address of addresses) {
      if (this.#rules.refuses(address)) throw notAllowed(address);
      if (await this.#reserved?.has(address, port)) {
        throw notAllowed(`${joinHostPort(address, port)} is an API server`);
      }
    }
    const [first] = addresses;
    if (first === undefined) throw new NodeAddressRefused(`no address found for ${host}`);
    return first;
  }

  /**
   * For a proxy that resolves names itself: checks an address, but does not look names up. Throws
   * NodeAddressRefused.
   */
  async check(host: string, port: number): Promise<string> {
    if (isIP(host) !== 0) return await this.resolve(host, port);
    requireHost(host);
    if (/(^|\.)localhost\.?$/i.test(host) && this.#rules.refuses("127.0.0.1")) throw notAllowed(host);
    return host;
  }
}

/** `2130706433`, `0x7f.1` and `127.1` are not names: resolvers read them as addresses without the DNS. */
function requireHost(host: string): void {
  if (!isHost(host)) throw notAllowed(JSON.stringify(host.slice(0, MAX_QUOTED_CHARACTERS)));
  if (isIP(host) === 0 && /(^|\.)(\d+|0x[0-9a-f]*)\.?$/i.test(host)) throw notAllowed(host);
}

function notAllowed(what: string): NodeAddressRefused {
  return new NodeAddressRefused(`address not allowed: ${what}`);
}

/** Every address of a name, from the system's resolver. */
async function resolveByDns(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true, verbatim: false })).map(({ address }) => address);
}
