import type { Ingress, IngressBackend } from "../api/networking-objects.ts";
import type { RouteNames } from "../observability/route-metrics.ts";
import { type PathRewrite, segmentsOf } from "./path-rewrite.ts";
import type { RouteOptions } from "./route-options.ts";

/** The API group of the one resource backend that exists: this gateway's own streaming leg. */
export const STREAMING_BACKEND = { apiGroup: "sluice.dev", kind: "StreamingGateway" } as const;

/** Where the requests of one path go. */
export type RouteBackend = ServiceRoute | StreamingRoute;

export interface ServiceRoute {
  readonly type: "service";
  readonly ingress: Ingress;
  readonly names: RouteNames;
  readonly namespace: string;
  readonly service: string;
  /** The Service's port, by number or name. */
  readonly port: number | string;
  readonly options: RouteOptions;
  /** Of the rule, as it is matched. */
  readonly path: string;
  /** How paths reach the Service; absent: as they came. */
  readonly rewrite?: PathRewrite | undefined;
}

/** The API-server leg under a host and a path prefix, which is stripped. */
export interface StreamingRoute {
  readonly type: "streaming";
  readonly ingress: Ingress;
  readonly names: RouteNames;
  /** The name of a gateway in the configuration. */
  readonly name: string;
  /** Of the rule's path: so many are not part of the gateway's own paths. */
  readonly strippedSegments: number;
}

/** Undefined: nothing that can be served; the reason is for an Event. */
export function routeBackendOf(
  backend: IngressBackend,
  path: string,
  ingress: Ingress,
  options: RouteOptions,
  rewrite?: PathRewrite,
): RouteBackend | { readonly type: "skipped"; readonly message: string } {
  const { service, resource } = backend;
  const names = routeNames(ingress, backend);
  if (service !== undefined) {
    const port = service.port?.name || service.port?.number;
    if (port === undefined) return skipped(`service ${JSON.stringify(service.name)} is named without a port`);
    const namespace = ingress.metadata.namespace ?? "default";
    return {
      type: "service",
      ingress,
      names,
      namespace,
      service: service.name,
      port,
      options,
      path,
      rewrite,
    };
  }
  if (resource === undefined) return skipped("a backend names neither a service nor a resource");
  const { apiGroup, kind, name } = resource;
  if (apiGroup !== STREAMING_BACKEND.apiGroup || kind !== STREAMING_BACKEND.kind) {
    const named = `${kind}${apiGroup === undefined ? "" : `.${apiGroup}`}`;
    return skipped(`resource backend ${JSON.stringify(named)} is not supported`);
  }
  return {
    type: "streaming",
    ingress,
    names,
    name,
    strippedSegments: segmentsOf(path),
  };
}

/** Of each backend of these Ingresses, in their order. */
export function* routeNamesOf(ingresses: readonly Ingress[]): Generator<RouteNames> {
  for (const ingress of ingresses) {
    const { defaultBackend, rules = [] } = ingress.spec ?? {};
    for (const { http } of rules) {
      for (const { backend } of http?.paths ?? []) yield routeNames(ingress, backend);
    }
    if (defaultBackend !== undefined) yield routeNames(ingress, defaultBackend);
  }
}

function routeNames({ metadata }: Ingress, { service, resource }: IngressBackend): RouteNames {
  const { name: ingress, namespace = "default" } = metadata;
  return { namespace, ingress, service: service?.name ?? resource?.name ?? "" };
}

function skipped(message: string): { type: "skipped"; message: string } {
  return { type: "skipped", message };
}
