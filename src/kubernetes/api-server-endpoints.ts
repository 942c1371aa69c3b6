import type { EndpointSlice } from "../api/networking-objects.ts";
import type { KubernetesObject } from "../api/objects.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import { servesApi } from "../config/sections/listeners.ts";
import type { ClusterMetrics } from "../observability/cluster-metrics.ts";
import type { Logger } from "../observability/logger.ts";
import type { ApiClient } from "./api-client.ts";
import { collectionPath, liveObject } from "./live-object.ts";
import { loggedReflector } from "./logged-reflector.ts";
import type { Reflector } from "./reflector.ts";

/** The API servers' Service, and the EndpointSlice that they write for it. */
const API_SERVER_SERVICE = { namespace: "default", name: "kubernetes" } as const;

/** The reason that `sluice rbac` prints beside the rule. */
export const API_SERVERS_NEED =
  "the API servers' own endpoints, which no node may have (kubelet.allowAPIServerEndpoints)";

/**
 * Whether the gateway looks up the API servers' addresses, to refuse nodes that claim one of them.
 */
export function reservesApiServers({ cluster, kubelet, listeners }: GatewayConfiguration): boolean {
  return cluster.live !== undefined && servesApi(listeners) && !kubelet.allowAPIServerEndpoints;
}

interface ApiServerEndpointsOptions {
  readonly client: Pick<ApiClient, "json" | "open">;
  readonly metrics: ClusterMetrics;
  readonly logger: Pick<Logger, "info" | "warn">;
}

/** Current addresses and ports of the cluster's API servers; empty before the first list. */
export class ApiServerEndpoints {
  readonly #reflector: Reflector;
  #endpoints: readonly { readonly host: string; readonly port: number }[] = [];

  constructor({ client, metrics, logger }: ApiServerEndpointsOptions) {
    const { namespace, name } = API_SERVER_SERVICE;
    const take = (slice?: KubernetesObject): void => {
      this.#endpoints = slice === undefined ? [] : endpointsOf(slice as EndpointSlice);
    };
    this.#reflector = loggedReflector<KubernetesObject>({
      kind: "EndpointSlice",
      client,
      path: collectionPath("EndpointSlice", namespace),
      fieldSelector: `metadata.name=${name}`,
      sink: { replace: ([slice]) => take(slice), upsert: take, remove: () => take() },
      read: (value) => liveObject("EndpointSlice", value),
      metrics,
      logger,
    });
    this.#reflector.start();
  }

  list(): readonly { readonly host: string; readonly port: number }[] {
    return this.#endpoints;
  }

  async stop(): Promise<void> {
    await this.#reflector.stop();
  }
}

function endpointsOf({ endpoints = [], ports = [] }: EndpointSlice) {
  const numbers = ports.flatMap(({ port }) => (port === undefined ? [] : [port]));
  return endpoints.flatMap(({ addresses }) =>
    addresses.flatMap((host) => numbers.map((port) => ({ host, port }))),
  );
}
