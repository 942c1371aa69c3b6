import { PathTree, type PathType } from "./path-tree.ts";
import { wildcardOf } from "./request-host.ts";

/** One path of one rule of one Ingress. */
export interface Route<Backend> {
  /** Exact, `*.suffix`, or undefined for every host. Lower case. */
  readonly host: string | undefined;
  readonly path: string;
  readonly pathType: PathType;
  readonly backend: Backend;
}

/** What a host falls back to when none of its paths match. */
export interface DefaultRoute<Backend> {
  /** The hosts of the same Ingress' rules, as far as they belong to its namespace. */
  readonly hosts: readonly (string | undefined)[];
  readonly backend: Backend;
}

interface HostRoutes<Backend> {
  readonly paths: PathTree<Backend>;
  fallback: Backend | undefined;
}

/**
 * All routes, compiled. Immutable once built: a change builds another one, and requests see either the old or the new.
 *
 * A request has one bucket: its exact host, else the wildcard of its host, else the rules without a host; then the longest
 * path of that bucket, else the bucket's default. The global default serves hosts that no rule names (KEP-1453). A path miss never
 * falls through to a wider host: requests of `a.example.com` are not for the owner of `*.example.com`, nor of any default backend.
 */
export class RouteTable<Backend> {
  readonly #hosts = new Map<string | undefined, HostRoutes<Backend>>();
  #fallback: Backend | undefined;
  #hasWildcards = false;

  /** A host that a rule names is served by its own rules alone, even when none of them has a backend that can be served. */
  addHost(host: string | undefined): void {
    this.#routesOf(host);
  }

  /** In order of precedence. False: another route has the same host, type and path already. */
  add({ host, path, pathType, backend }: Route<Backend>): boolean {
    return this.#routesOf(host).paths.add(pathType, path, backend);
  }

  /** In order of precedence: a host's default is that of the first Ingress that has one. */
  addDefault({ hosts, backend }: DefaultRoute<Backend>): void {
    for (const host of hosts) this.#routesOf(host).fallback ??= backend;
    this.#fallback ??= backend;
  }

  /** `host` as `hostForMatching` gives it, `path` as `requestPathOf`; undefined for targets that have none (`OPTIONS *`). */
  match(host: string, path: string | undefined): Backend | undefined {
    const named = this.#hosts.get(host) ?? this.#wildcardRoutes(host);
    const routes = named ?? this.#hosts.get(undefined);
    const matched = path === undefined ? undefined : routes?.paths.match(path);
    return matched ?? routes?.fallback ?? (named === undefined ? this.#fallback : undefined);
  }

  #wildcardRoutes(host: string): HostRoutes<Backend> | undefined {
    const wildcard = this.#hasWildcards ? wildcardOf(host) : undefined;
    return wildcard === undefined ? undefined : this.#hosts.get(wildcard);
  }

  #routesOf(host: string | undefined): HostRoutes<Backend> {
    let routes = this.#hosts.get(host);
    if (routes === undefined) {
      routes = { paths: new PathTree(), fallback: undefined };
      this.#hosts.set(host, routes);
      if (host?.startsWith("*") === true) this.#hasWildcards = true;
    }
    return routes;
  }
}
