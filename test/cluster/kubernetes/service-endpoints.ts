import { loadKubeconfig } from "../../../packages/client/src/kubernetes/kubeconfig.ts";
import { type Endpoint, SERVICE_NAME_LABEL } from "../../../src/api/networking-objects.ts";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { ApiClient } from "../../../src/kubernetes/api-client.ts";
import { LiveCluster } from "../../../src/kubernetes/live-cluster.ts";
import { Metrics } from "../../../src/observability/metrics.ts";

/** The endpoints of a cluster's Services, as its EndpointSlices name them now. */
export class ServiceEndpoints {
  readonly #store = new ClusterStore();
  readonly #client: ApiClient;
  readonly #live: LiveCluster;

  private constructor(client: ApiClient) {
    this.#client = client;
    this.#live = new LiveCluster({
      client,
      store: this.#store,
      kinds: ["EndpointSlice"],
      maxStateAgeMs: 60_000,
      metrics: new Metrics({ withProcessMetrics: false }).cluster,
      logger: { info: () => {}, warn: () => {} },
    });
    this.#live.start();
  }

  static async follow(kubeconfigFile: string): Promise<ServiceEndpoints> {
    const client = new ApiClient({ kubeconfig: await loadKubeconfig(kubeconfigFile), dialTimeoutMs: 5_000 });
    return new ServiceEndpoints(client);
  }

  /** Of the ready endpoints, and of those that end and still serve where none is ready, as kube-proxy takes them. */
  addresses(namespace: string, service: string): readonly string[] {
    const slices = this.#store
      .list("EndpointSlice", namespace)
      .filter(({ metadata }) => metadata.labels?.[SERVICE_NAME_LABEL] === service);
    const all = slices.flatMap(({ endpoints = [] }) => endpoints);
    const ready = all.filter(({ conditions }) => conditions?.ready !== false);
    const serving = all.filter(({ conditions }) => conditions?.serving === true);
    return (ready.length > 0 ? ready : serving).flatMap(({ addresses }: Endpoint) => addresses);
  }

  async close(): Promise<void> {
    await this.#live.stop();
    this.#client.close();
  }
}
