import type { Ingress, IngressBackend } from "../api/networking-objects.ts";
import type { RouteNames } from "../observability/ingress-metrics.ts";
import { cookiePathOf } from "./affinity.ts";
import { segmentsOf } from "./path-rewrite.ts";
import type { RouteBackend } from "./route.ts";
import type { RouteOptions } from "./route-options.ts";

/** The only supported resource backend: this gateway's own streaming leg. */
const STREAMING_BACKEND = { apiGroup: "sluice.dev", kind: "StreamingGateway" } as const;

/** What an Ingress's backend is here, or why nothing can be served, for an Event. */
export function routeBackendOf(
  backend: IngressBackend,
  path: string,
  ingress: Ingress,
  options: RouteOptions,
): RouteBackend | { readonly type: "skipped"; readonly message: string } {
  const { service, resource } = backend;
  const names = routeNames(ingress, backend);
  if (service !== undefined) {
    const port = service.port?.name || service.port?.number;
    if (port === undefined) return skipped(`service ${JSON.stringify(service.name)} is named without a port`);
    const namespace = ingress.metadata.namespace ?? "default";
    return {
      type: "service",
      origin: ingress,
      names,
      namespace,
      service: service.name,
      port,
      options,
      cookiePath: cookiePathOf(path),
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
    origin: ingress,
    names,
    name,
    strippedSegments: segmentsOf(path),
  };
}

/** Yields the names of each backend in these Ingresses, in order. */
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
