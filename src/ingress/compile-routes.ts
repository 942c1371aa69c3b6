import type { Ingress } from "../api/networking-objects.ts";
import type { Namespace } from "../api/objects.ts";
import type { IngressClasses } from "./ingress-classes.ts";
import type { PathType } from "./path-tree.ts";
import { type RouteBackend, routeBackendOf } from "./route-backend.ts";
import { type RouteOptions, routeOptionsOf } from "./route-options.ts";
import { RouteTable } from "./route-table.ts";

/** A rule that is not served as written: a Warning Event of its Ingress. */
export interface RouteProblem {
  readonly ingress: Ingress;
  readonly reason: "SkippedBackend" | "InvalidAnnotation" | "DuplicateRoute";
  readonly message: string;
}

export interface CompiledRoutes {
  readonly table: RouteTable<RouteBackend>;
  /** The Ingresses that the table is made of, in order of precedence. */
  readonly ingresses: readonly Ingress[];
  readonly problems: readonly RouteProblem[];
}

/**
 * The Ingresses that are served, oldest first (then by namespace and name). Those that are being deleted, or whose namespace
 * is, are gone at once: whoever takes over their hosts must not wait for the last finalizer.
 */
export function servedIngresses(
  ingresses: readonly Ingress[],
  classes: IngressClasses,
  namespaceOf: (name: string) => Namespace | undefined,
): Ingress[] {
  const isDying = (namespace: string): boolean => {
    const found = namespaceOf(namespace);
    return found?.metadata.deletionTimestamp !== undefined || found?.status?.phase === "Terminating";
  };
  return ingresses
    .filter(
      (ingress) =>
        ingress.metadata.deletionTimestamp === undefined &&
        classes.owns(ingress) &&
        !isDying(ingress.metadata.namespace ?? "default"),
    )
    .toSorted(byPrecedence);
}

/** Compiles routes a slice at a time: whoever calls `next` may serve requests in between. Returns when all is compiled. */
export function* compileRoutes(ingresses: readonly Ingress[]): Generator<void, CompiledRoutes> {
  const table = new RouteTable<RouteBackend>();
  const problems: RouteProblem[] = [];
  for (const ingress of ingresses) {
    addIngress(ingress, table, problems);
    yield;
  }
  return { table, ingresses, problems };
}

function addIngress(ingress: Ingress, table: RouteTable<RouteBackend>, problems: RouteProblem[]): void {
  const { options, problems: found } = routeOptionsOf(ingress);
  for (const message of found) problems.push({ ingress, reason: "InvalidAnnotation", message });
  const { defaultBackend, rules = [] } = ingress.spec ?? {};
  for (const { host: written, http } of rules) {
    const host = written?.toLowerCase() || undefined;
    table.addHost(host);
    for (const { path = "", pathType, backend } of http?.paths ?? []) {
      const served = servedBackend(ingress, backend, path, options, problems);
      if (served === undefined) continue;
      const route = {
        host,
        path,
        pathType: pathTypeOf(pathType),
        backend: served,
      };
      if (table.add(route)) continue;
      const message = `${host ?? "any host"}${path} (${route.pathType}) is served for another rule that is older`;
      problems.push({ ingress, reason: "DuplicateRoute", message });
    }
  }
  if (defaultBackend === undefined) return;
  const served = servedBackend(ingress, defaultBackend, "/", options, problems);
  if (served === undefined) return;
  const hosts = rules.map(({ host }) => host?.toLowerCase() || undefined);
  table.addDefault({ hosts, backend: served });
}

function servedBackend(
  ingress: Ingress,
  backend: Parameters<typeof routeBackendOf>[0],
  path: string,
  options: RouteOptions,
  problems: RouteProblem[],
): RouteBackend | undefined {
  const served = routeBackendOf(backend, path, ingress, options);
  if (served.type !== "skipped") return served;
  problems.push({ ingress, reason: "SkippedBackend", message: served.message });
  return undefined;
}

function pathTypeOf(pathType: string | undefined): PathType {
  return pathType === "Exact" || pathType === "Prefix" ? pathType : "ImplementationSpecific";
}

function byPrecedence(a: Ingress, b: Ingress): number {
  return (
    compare(a.metadata.creationTimestamp ?? "", b.metadata.creationTimestamp ?? "") ||
    compare(keyOf(a), keyOf(b))
  );
}

function keyOf({ metadata }: Ingress): string {
  return `${metadata.namespace ?? "default"}/${metadata.name}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
