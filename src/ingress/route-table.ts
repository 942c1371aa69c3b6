import { wildcardOf } from "./ingress-request.ts";
import { PathTree, type PathType } from "./path-tree.ts";

/** A candidate at one host and path. */
interface PlacedRoute<Route> {
  /** Exact, `*.suffix`, or undefined for every host; in lower case. */
  readonly host: string | undefined;
  readonly path: string;
  readonly pathType: PathType;
  readonly route: Route;
  /** It may refuse requests of its host and path, which the next candidate gets. */
  readonly isConditional?: boolean;
}

/** Serves a host's requests that match none of its paths. */
interface DefaultRoute<Route> {
  /** The hosts of the same object that its namespace owns. */
  readonly hosts: readonly (string | undefined)[];
  readonly route: Route;
}

interface HostRoutes<Route> {
  readonly paths: PathTree<Route>;
  fallback: Route | undefined;
}

/**
 * All routes, compiled and immutable. A request uses one bucket: its exact host, else its wildcard,
 * else the rules without a host. The bucket's longest path wins, else the bucket's default; the
 * global default serves only hosts without a rule (KEP-1453). A missed path never falls through to
 * a wider host: the owner of `*.example.com` gets no requests for `a.example.com`.
 */
export class RouteTable<Route> {
  readonly #hosts = new Map<string | undefined, HostRoutes<Route>>();
  #fallback: Route | undefined;
  #hasWildcards = false;

  /** A host with a rule uses only its own rules, even if none of them has a usable backend. */
  addHost(host: string | undefined): void {
    this.#routesOf(host);
  }

  /** Call in order of precedence. False if an earlier route takes all requests of this host, type and path. */
  add({ host, path, pathType, route, isConditional = false }: PlacedRoute<Route>): boolean {
    return this.#routesOf(host).paths.add(pathType, path, route, isConditional);
  }

  /** Call in order of precedence: a host's first default stays. */
  addDefault({ hosts, route }: DefaultRoute<Route>): void {
    for (const host of hosts) this.#routesOf(host).fallback ??= route;
    this.#fallback ??= route;
  }

  /**
   * `host` comes from `hostForMatching`, `path` from `requestPathOf`; undefined for targets without
   * one (`OPTIONS *`). `accepts` judges candidates that are conditional.
   */
  match(
    host: string,
    path: string | undefined,
    accepts: (route: Route) => boolean = () => true,
  ): Route | undefined {
    const named = this.#hosts.get(host) ?? this.#wildcardRoutes(host);
    const routes = named ?? this.#hosts.get(undefined);
    const matched = path === undefined ? undefined : routes?.paths.match(path, accepts);
    return matched ?? routes?.fallback ?? (named === undefined ? this.#fallback : undefined);
  }

  #wildcardRoutes(host: string): HostRoutes<Route> | undefined {
    const wildcard = this.#hasWildcards ? wildcardOf(host) : undefined;
    return wildcard === undefined ? undefined : this.#hosts.get(wildcard);
  }

  #routesOf(host: string | undefined): HostRoutes<Route> {
    let routes = this.#hosts.get(host);
    if (routes === undefined) {
      routes = { paths: new PathTree(), fallback: undefined };
      this.#hosts.set(host, routes);
      if (host?.startsWith("*") === true) this.#hasWildcards = true;
    }
    return routes;
  }
}
