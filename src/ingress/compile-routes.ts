import { type Ingress, type IngressBackend, isRegularExpression } from "../api/networking-objects.ts";
import type { Namespace } from "../api/objects.ts";
import type { HostOwnership } from "../config/sections/ingress-listener.ts";
import { sorting } from "../lifecycle/slices.ts";
import type { RouteNames } from "../observability/ingress-metrics.ts";
import { cookiePathOf } from "./affinity.ts";
import { HostOwners, hostOf, type IngressClasses } from "./ingress-classes.ts";
import { rulePathOf } from "./ingress-request.ts";
import { type PathRewrite, rulePathWith, segmentsOf } from "./path-rewrite.ts";
import type { Route, RouteBackend, RouteOrigin } from "./route.ts";
import { type RouteOptions, routeOptionsOf } from "./route-options.ts";
import { type PathType, RouteTable } from "./route-table.ts";

/** The only supported resource backend: this gateway's own streaming leg. */
const STREAMING_BACKEND = { apiGroup: "sluice.dev", kind: "StreamingGateway" } as const;

/** A rule that cannot be served as it is written; reported as a Warning Event on its Ingress. */
export interface RouteProblem {
  readonly origin: RouteOrigin;
  readonly reason:
    | "SkippedBackend"
    | "InvalidAnnotation"
    | "DuplicateRoute"
    | "HostOfAnotherNamespace"
    | "RegularExpression";
  readonly message: string;
  /** Namespace and name of another tenant's Ingress; only logged. */
  readonly owner?: string;
}

interface CompiledRoutes {
  readonly table: RouteTable<Route>;
  /** The compiled Ingresses, in order of precedence. */
  readonly ingresses: readonly Ingress[];
  readonly problems: readonly RouteProblem[];
}

/**
 * The served Ingresses, oldest first, then by namespace and name. Leaves out deleted ones, and
 * those in a deleted namespace: the next owner of a host does not wait for finalizers.
 */
export function* findingServed(
  ingresses: readonly Ingress[],
  classes: IngressClasses,
  namespaceOf: (name: string) => Namespace | undefined,
): Generator<void, Ingress[]> {
  const isDying = (namespace: string): boolean => {
    const found = namespaceOf(namespace);
    return found?.metadata.deletionTimestamp !== undefined || found?.status?.phase === "Terminating";
  };
  const served: Ingress[] = [];
  for (const ingress of ingresses) {
    const { deletionTimestamp, namespace = "default" } = ingress.metadata;
    if (deletionTimestamp === undefined && classes.owns(ingress) && !isDying(namespace)) served.push(ingress);
    yield;
  }
  return yield* sorting(served, byPrecedence);
}

/**
 * Compiles routes in slices: the caller may serve requests between calls of `next`. Returns when
 * all are compiled.
 */
export function* compileRoutes(
  ingresses: readonly Ingress[],
  hostOwnership: HostOwnership,
): Generator<void, CompiledRoutes> {
  const table = new RouteTable<Route>();
  const problems: RouteProblem[] = [];
  const owners = yield* HostOwners.finding(ingresses);
  for (const ingress of ingresses) {
    const foreign = foreignHosts(ingress, owners, hostOwnership, problems);
    addIngress(ingress, foreign, hostOwnership, table, problems);
    yield;
  }
  return { table, ingresses, problems };
}

/** The rules' hosts that belong to other namespaces. Reports each as a problem. */
function foreignHosts(
  ingress: Ingress,
  owners: HostOwners,
  hostOwnership: HostOwnership,
  problems: RouteProblem[],
): ReadonlySet<string | undefined> {
  const foreign = new Set<string | undefined>();
  for (const host of new Set((ingress.spec?.rules ?? []).map(hostOf))) {
    const owner = owners.foreignOwnerOf(host, ingress.metadata.namespace);
    if (owner === undefined) continue;
    foreign.add(host);
    const consequence = hostOwnership === "first" ? "are not served" : "are served beside those";
    const message = `host ${JSON.stringify(host)} was named first by an Ingress of another namespace: its rules here ${consequence}`;
    problems.push({ origin: ingress, reason: "HostOfAnotherNamespace", message, owner: keyOf(owner) });
  }
  return foreign;
}

function addIngress(
  ingress: Ingress,
  foreign: ReadonlySet<string | undefined>,
  hostOwnership: HostOwnership,
  table: RouteTable<Route>,
  problems: RouteProblem[],
): void {
  const { options, problems: found } = routeOptionsOf(ingress);
  for (const message of found) problems.push({ origin: ingress, reason: "InvalidAnnotation", message });
  const { defaultBackend, rules = [] } = ingress.spec ?? {};
  for (const rule of rules) {
    const host = hostOf(rule);
    if (hostOwnership === "first" && foreign.has(host)) continue;
    const { http } = rule;
    table.addHost(host);
    for (const { path = "", pathType, backend } of http?.paths ?? []) {
      const read = rulePathWith(options.rewriting, path, pathType);
      const served = routeTo(ingress, backend, read, options, problems);
      if (served === undefined) continue;
      if (read.problem !== undefined)
        problems.push({ origin: ingress, reason: "InvalidAnnotation", message: read.problem });
      if (!read.isPattern && isRegularExpression(path, pathType)) {
        const message = `path ${JSON.stringify(path)} looks like a regular expression and is not one here: it is matched literally, as a prefix`;
        problems.push({ origin: ingress, reason: "RegularExpression", message });
      }
      const placed = {
        host,
        path: rulePathOf(read.path),
        pathType: read.isPattern ? ("Prefix" as const) : pathTypeOf(pathType),
        route: served,
      };
      if (table.add(placed)) continue;
      const message = `${host ?? "any host"}${path} (${placed.pathType}) is served for another rule that is older`;
      problems.push({ origin: ingress, reason: "DuplicateRoute", message });
    }
  }
  if (defaultBackend === undefined) return;
  const { rewriting } = options;
  const own = rewriting?.type === "prefix" ? rulePathWith(rewriting, "/", undefined).rewrite : undefined;
  const served = routeTo(ingress, defaultBackend, { path: "/", rewrite: own }, options, problems);
  if (served === undefined) return;
  // A request for another tenant's host must not fall back to this Ingress.
  const hosts = rules.map(hostOf).filter((host) => !foreign.has(host));
  table.addDefault({ hosts, route: served });
}

/** The route for one path of an Ingress. It takes every request, and has one backend. */
function routeTo(
  ingress: Ingress,
  backend: Parameters<typeof routeBackendOf>[0],
  { path, rewrite }: { readonly path: string; readonly rewrite?: PathRewrite | undefined },
  options: RouteOptions,
  problems: RouteProblem[],
): Route | undefined {
  const served = routeBackendOf(backend, path, ingress, options);
  if (served.type !== "skipped") {
    const { redirectsToTls } = options;
    return { filters: { redirectsToTls, rewrite }, backends: [{ weight: 1, backend: served }] };
  }
  problems.push({ origin: ingress, reason: "SkippedBackend", message: served.message });
  return undefined;
}

function pathTypeOf(pathType: string | undefined): PathType {
  return pathType === "Exact" || pathType === "Prefix" ? pathType : "ImplementationSpecific";
}

function byPrecedence(a: Ingress, b: Ingress): number {
  return (
    compare(a.metadata.creationTimestamp ?? "", b.metadata.creationTimestamp ?? "") ||
    (a.metadata.namespace === b.metadata.namespace
      ? compare(a.metadata.name, b.metadata.name)
      : compare(keyOf(a), keyOf(b)))
  );
}

function keyOf({ metadata }: Ingress): string {
  return `${metadata.namespace ?? "default"}/${metadata.name}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The destination that an Ingress's backend names, or, for an Event, why nothing can be served. */
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
