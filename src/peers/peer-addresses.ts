import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import { type EndpointSlice, SERVICE_NAME_LABEL } from "../api/networking-objects.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { type PeersListener, peerAddressOf } from "../config/sections/listeners.ts";
import type { Logger } from "../observability/logger.ts";

export interface PeerAddress {
  readonly host: string;
  readonly port: number;
  /** `host:port`, for operators. */
  readonly name: string;
}

/**
 * The addresses of replicas, possibly including this one: a configured list, or all endpoints of a
 * Service, ready or not.
 */
export class PeerAddresses {
  readonly #settings: Pick<PeersListener, "addresses" | "service">;
  readonly #maxPeers: number;
  readonly #cluster: Pick<Cluster, "list">;
  readonly #logger: Pick<Logger, "warn">;
  #hasWarned = false;

  constructor(
    settings: Pick<PeersListener, "addresses" | "service">,
    maxPeers: number,
    cluster: Pick<Cluster, "list">,
    logger: Pick<Logger, "warn">,
  ) {
    this.#settings = settings;
    this.#maxPeers = maxPeers;
    this.#cluster = cluster;
    this.#logger = logger;
  }

  /** The current addresses, cut at the bound. */
  list(): readonly PeerAddress[] {
    const { addresses, service } = this.#settings;
    const found = new Map<string, PeerAddress>();
    const add = ({ host, port }: { readonly host: string; readonly port: number }): void => {
      const name = joinHostPort(host, port);
      found.set(name, { host, port, name });
    };
    if (service === undefined)
      for (const each of addresses) add(peerAddressOf(each) ?? { host: each, port: 0 });
    else
      for (const slice of this.#slicesOf(service))
        for (const each of endpointsIn(slice, service.port)) add(each);
    const all = [...found.values()];
    const isTooMany = all.length > this.#maxPeers;
    if (isTooMany && !this.#hasWarned) {
      this.#logger.warn(
        { peers: all.length, maxPeers: this.#maxPeers },
        "there are more replicas than are asked",
      );
    }
    this.#hasWarned = isTooMany;
    return isTooMany ? all.slice(0, this.#maxPeers) : all;
  }

  #slicesOf({ name, namespace }: NonNullable<PeersListener["service"]>): EndpointSlice[] {
    return this.#cluster
      .list("EndpointSlice")
      .filter(
        ({ metadata }) =>
          metadata.labels?.[SERVICE_NAME_LABEL] === name && (metadata.namespace ?? "default") === namespace,
      );
  }
}

/** Includes endpoints that are not ready: a draining replica still owns its sessions. */
function endpointsIn(
  { addressType, endpoints = [], ports = [] }: EndpointSlice,
  portName: string,
): { readonly host: string; readonly port: number }[] {
  const port = ports.find(({ name }) => (name ?? "") === portName)?.port;
  // FQDN slices contain host names to resolve, like ExternalName.
  if (port === undefined || addressType === "FQDN") return [];
  return endpoints.flatMap(({ addresses: [host] }) => (host === undefined ? [] : [{ host, port }]));
}
