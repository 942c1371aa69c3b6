import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import { type EndpointSlice, SERVICE_NAME_LABEL } from "../api/networking-objects.ts";
import type { Cluster, ClusterChange } from "../cluster/cluster.ts";
import type { AddressRules } from "../net/address-rules.ts";
import { type BackendIdentity, backendIdentityOf, speaksTls } from "./backend-tls.ts";
import { EndpointUpstream } from "./endpoint-upstream.ts";
import type { ServiceRoute } from "./route.ts";
import type { BackendTrust } from "./route-options.ts";
import { type EndpointProblem, endpointsOf } from "./service-endpoints.ts";
import { type StickyEndpoint, stickyEndpoint } from "./sticky-endpoints.ts";

/** Picks the endpoints for one request, one after another. */
export interface EndpointPicker {
  readonly appProtocol: string | undefined;
  /** Ready endpoints that `listeners.ingress.allowedEndpointAddresses` forbids. */
  readonly refused: readonly string[];
  /** Candidates for session affinity. */
  readonly sticky: readonly StickyEndpoint[];
  /** The next endpoint; returns each one once, then undefined. */
  next(): EndpointUpstream | undefined;
}

interface BalancerOptions {
  readonly cluster: Cluster;
  readonly addressRules: AddressRules;
  readonly dialTimeoutMs: number;
  /** A TLS handshake with an endpoint failed. Reported once a minute for each endpoint. */
  onTlsFailure(failure: TlsFailure): void;
}

interface TlsFailure {
  readonly namespace: string;
  readonly service: string;
  /** host:port. */
  readonly endpoint: string;
  /** The problem, in the words of Go's crypto/tls. */
  readonly cause: string;
}

/** One port of a Service, with one set of trust settings. */
interface ServicePort {
  readonly port: number | string;
  readonly trust: BackendTrust | undefined;
  balanced: Balanced | EndpointProblem;
}

interface Balanced {
  readonly upstreams: readonly EndpointUpstream[];
  readonly appProtocol: string | undefined;
  readonly refused: readonly string[];
  /** The endpoints for session affinity; built on first use. */
  sticky: readonly StickyEndpoint[] | undefined;
  /** The pods of `upstreams`, in the same order. */
  readonly podUids: readonly (string | undefined)[];
  /** Absent: plain TCP. */
  readonly identity: BackendIdentity | undefined;
  /** Incremented by each request. */
  turn: number;
}

/**
 * Round robin over the endpoints of each Service port. Endpoints are resolved again when the
 * Service or its slices change; connections to remaining endpoints stay open.
 */
export class ServiceBalancer {
  readonly #options: BalancerOptions;
  /**
   * Keyed by namespace/service, then by port, or by port and trust: different trust settings share
   * no connection.
   */
  readonly #asked = new Map<string, Map<number | string, ServicePort>>();
  readonly #slices = new Map<string, Map<string, EndpointSlice>>();
  readonly #unsubscribe: () => void;

  constructor(options: BalancerOptions) {
    this.#options = options;
    for (const slice of options.cluster.list("EndpointSlice")) this.#keepSlice(slice);
    this.#unsubscribe = options.cluster.subscribe((change) => this.#changed(change));
  }

  turnFor({ namespace, service, port, options }: ServiceRoute): EndpointPicker | EndpointProblem {
    const key = `${namespace}/${service}`;
    const ports = this.#asked.get(key) ?? new Map<number | string, ServicePort>();
    this.#asked.set(key, ports);
    const trust = options.backendTrust;
    const portKey = trust === undefined ? port : JSON.stringify([port, trust.caSecret, trust.serverName]);
    let asked = ports.get(portKey);
    if (asked === undefined) {
      asked = { port, trust, balanced: this.#resolve(namespace, service, port, trust, undefined) };
      ports.set(portKey, asked);
    }
    const { balanced } = asked;
    return typeof balanced === "string" ? balanced : new EndpointTurn(balanced);
  }

  stop(): void {
    this.#unsubscribe();
    for (const ports of this.#asked.values())
      for (const { balanced } of ports.values()) closeAllBut(balanced, []);
    this.#asked.clear();
  }

  #changed({ type, object, previous }: ClusterChange): void {
    if (object.kind === "Service")
      this.#refresh(`${object.metadata.namespace ?? "default"}/${object.metadata.name}`);
    if (object.kind === "Secret")
      this.#authorityChanged(object.metadata.namespace ?? "default", object.metadata.name);
    if (object.kind !== "EndpointSlice") return;
    // A slice is replaced in one step. If it were removed first, its connections would be closed.
    if (previous?.kind === "EndpointSlice" && serviceOf(previous) !== serviceOf(object)) {
      this.#dropSlice(previous);
    }
    if (type === "DELETED") this.#dropSlice(object);
    else this.#keepSlice(object);
  }

  #authorityChanged(namespace: string, name: string): void {
    for (const [key, ports] of this.#asked) {
      if (!key.startsWith(`${namespace}/`)) continue;
      if ([...ports.values()].some(({ trust }) => trust?.caSecret === name)) this.#refresh(key);
    }
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

  /** Resolves the ports in use again; drops a deleted Service until the next request. */
  #refresh(key: string): void {
    const ports = this.#asked.get(key);
    if (ports === undefined) return;
    const [namespace = "", service = ""] = key.split("/");
    if (this.#options.cluster.get("Service", namespace, service) === undefined) {
      for (const { balanced } of ports.values()) closeAllBut(balanced, []);
      this.#asked.delete(key);
      return;
    }
    for (const asked of ports.values())
      asked.balanced = this.#resolve(namespace, service, asked.port, asked.trust, asked.balanced);
  }

  #resolve(
    namespace: string,
    service: string,
    port: number | string,
    trust: BackendTrust | undefined,
    before: Balanced | EndpointProblem | undefined,
  ): Balanced | EndpointProblem {
    const { cluster, addressRules, dialTimeoutMs, onTlsFailure } = this.#options;
    const slices = [...(this.#slices.get(`${namespace}/${service}`)?.values() ?? [])];
    const found = endpointsOf(cluster.get("Service", namespace, service), slices, port);
    if (typeof found === "string") {
      closeAllBut(before, []);
      return found;
    }
    const last = typeof before === "object" ? before : undefined;
    let identity: BackendIdentity | undefined;
    if (speaksTls(found.appProtocol)) {
      const { caSecret } = trust ?? {};
      const authority = caSecret === undefined ? undefined : cluster.get("Secret", namespace, caSecret);
      identity = backendIdentityOf(trust, authority, `${service}.${namespace}.svc`, last?.identity);
      if (identity === undefined) {
        closeAllBut(before, []);
        return "no-authority";
      }
    }
    const tls = identity?.tls;
    const allowed = found.addresses.filter(({ host }) => !addressRules.refuses(host));
    const upstreams = allowed.map(
      ({ host, port: number }) =>
        last?.upstreams.find(
          ({ endpoint }) => endpoint.host === host && endpoint.port === number && endpoint.tls === tls,
        ) ??
        new EndpointUpstream({ host, port: number, tls }, dialTimeoutMs, (cause) =>
          onTlsFailure({ namespace, service, endpoint: joinHostPort(host, number), cause }),
        ),
    );
    closeAllBut(before, upstreams);
    const refused = found.addresses.map(({ host }) => host).filter((host) => addressRules.refuses(host));
    const podUids = allowed.map(({ podUid }) => podUid);
    const { appProtocol } = found;
    return { upstreams, podUids, sticky: undefined, appProtocol, refused, identity, turn: last?.turn ?? 0 };
  }
}

/** The endpoints for one request. A class, because V8 is slow to create an object with a getter. */
class EndpointTurn implements EndpointPicker {
  readonly appProtocol: string | undefined;
  readonly refused: readonly string[];
  readonly #balanced: Balanced;
  #next: number;
  #left: number;

  constructor(balanced: Balanced) {
    this.appProtocol = balanced.appProtocol;
    this.refused = balanced.refused;
    this.#balanced = balanced;
    this.#next = balanced.turn++;
    this.#left = balanced.upstreams.length;
  }

  get sticky(): readonly StickyEndpoint[] {
    const balanced = this.#balanced;
    balanced.sticky ??= balanced.upstreams.map((upstream, index) =>
      stickyEndpoint(upstream, balanced.podUids[index]),
    );
    return balanced.sticky;
  }

  next(): EndpointUpstream | undefined {
    if (this.#left === 0) return undefined;
    this.#left -= 1;
    const { upstreams } = this.#balanced;
    return upstreams[this.#next++ % upstreams.length];
  }
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
