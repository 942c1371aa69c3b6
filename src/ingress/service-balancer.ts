import { type EndpointSlice, SERVICE_NAME_LABEL } from "../api/service-objects.ts";
import type { Cluster, ClusterChange } from "../cluster/cluster.ts";
import type { AddressRules } from "../upstream/address-rules.ts";
import { EndpointUpstream } from "./endpoint-upstream.ts";
import type { ServiceRoute } from "./route-backend.ts";
import { type EndpointProblem, endpointsOf } from "./service-endpoints.ts";

/** The endpoints to try for one request, in turn. */
export interface Turn {
  readonly appProtocol: string | undefined;
  /** The next one, each once; undefined when all have been tried. */
  next(): EndpointUpstream | undefined;
}

export interface BalancerOptions {
  readonly cluster: Cluster;
  readonly addressRules: AddressRules;
  readonly dialTimeoutMs: number;
}

interface Balanced {
  readonly upstreams: readonly EndpointUpstream[];
  readonly appProtocol: string | undefined;
  /** Counts on with every request. */
  turn: number;
}

/**
 * Chooses endpoints: plain round robin for each port of each Service, so that every endpoint gets its share whatever clients do.
 * What is chosen from is kept until the Service or one of its slices changes; connections to endpoints that stay are kept too.
 */
export class ServiceBalancer {
  readonly #options: BalancerOptions;
  /** By namespace/service, then by port. */
  readonly #balanced = new Map<string, Map<number | string, Balanced | EndpointProblem>>();
  readonly #slices = new Map<string, Map<string, EndpointSlice>>();
  readonly #unsubscribe: () => void;

  constructor(options: BalancerOptions) {
    this.#options = options;
    for (const slice of options.cluster.list("EndpointSlice")) this.#keepSlice(slice);
    this.#unsubscribe = options.cluster.subscribe((change) => this.#changed(change));
  }

  turnFor({ namespace, service, port }: ServiceRoute): Turn | EndpointProblem {
    const key = `${namespace}/${service}`;
    const ports = this.#balanced.get(key) ?? new Map<number | string, Balanced | EndpointProblem>();
    this.#balanced.set(key, ports);
    let balanced = ports.get(port);
    if (balanced === undefined) {
      balanced = this.#resolve(namespace, service, port, undefined);
      ports.set(port, balanced);
    }
    return typeof balanced === "string" ? balanced : turnOf(balanced);
  }

  stop(): void {
    this.#unsubscribe();
    for (const ports of this.#balanced.values())
      for (const balanced of ports.values()) closeAllBut(balanced, []);
    this.#balanced.clear();
  }

  #changed({ type, object, previous }: ClusterChange): void {
    if (object.kind === "Service")
      this.#refresh(`${object.metadata.namespace ?? "default"}/${object.metadata.name}`);
    if (object.kind !== "EndpointSlice") return;
    // The same slice is replaced at once: in between its connections would have been closed.
    if (previous?.kind === "EndpointSlice" && serviceOf(previous) !== serviceOf(object)) {
      this.#dropSlice(previous);
    }
    if (type === "DELETED") this.#dropSlice(object);
    else this.#keepSlice(object);
  }

  #keepSlice(slice: EndpointSlice): void {
    const key = serviceOf(slice);
    if (key === undefined) return;
    const slices = this.#slices.get(key) ?? new Map<string, EndpointSlice>();
    this.#slices.set(key, slices.set(slice.metadata.name, slice));
    this.#refresh(key);
  }

  #dropSlice(slice: EndpointSlice): void {
    const key = serviceOf(slice);
    const slices = key === undefined ? undefined : this.#slices.get(key);
    if (key === undefined || !slices?.delete(slice.metadata.name)) return;
    if (slices.size === 0) this.#slices.delete(key);
    this.#refresh(key);
  }

  /** Resolves again what was asked for before; a Service that is gone is forgotten, and asked for anew when a request comes. */
  #refresh(key: string): void {
    const ports = this.#balanced.get(key);
    if (ports === undefined) return;
    const [namespace = "", service = ""] = key.split("/");
    if (this.#options.cluster.get("Service", namespace, service) === undefined) {
      for (const balanced of ports.values()) closeAllBut(balanced, []);
      this.#balanced.delete(key);
      return;
    }
    for (const [port, before] of ports) ports.set(port, this.#resolve(namespace, service, port, before));
  }

  #resolve(
    namespace: string,
    service: string,
    port: number | string,
    before: Balanced | EndpointProblem | undefined,
  ): Balanced | EndpointProblem {
    const { cluster, addressRules, dialTimeoutMs } = this.#options;
    const slices = [...(this.#slices.get(`${namespace}/${service}`)?.values() ?? [])];
    const found = endpointsOf(cluster.get("Service", namespace, service), slices, port);
    if (typeof found === "string") {
      closeAllBut(before, []);
      return found;
    }
    const known = typeof before === "object" ? before.upstreams : [];
    const upstreams = found.addresses
      .filter(({ host }) => !addressRules.refuses(host))
      .map(
        ({ host, port: number }) =>
          known.find(({ endpoint }) => endpoint.host === host && endpoint.port === number) ??
          new EndpointUpstream({ host, port: number, tls: undefined }, dialTimeoutMs),
      );
    closeAllBut(before, upstreams);
    return { upstreams, appProtocol: found.appProtocol, turn: typeof before === "object" ? before.turn : 0 };
  }
}

function turnOf(balanced: Balanced): Turn {
  const { upstreams, appProtocol } = balanced;
  const first = balanced.turn++;
  let tried = 0;
  const next = (): EndpointUpstream | undefined => {
    if (tried === upstreams.length) return undefined;
    return upstreams[(first + tried++) % upstreams.length];
  };
  return { appProtocol, next };
}

function closeAllBut(
  balanced: Balanced | EndpointProblem | undefined,
  kept: readonly EndpointUpstream[],
): void {
  if (typeof balanced !== "object") return;
  for (const upstream of balanced.upstreams) if (!kept.includes(upstream)) upstream.close();
}

function serviceOf({ metadata }: EndpointSlice): string | undefined {
  const service = metadata.labels?.[SERVICE_NAME_LABEL];
  return service === undefined ? undefined : `${metadata.namespace ?? "default"}/${service}`;
}
