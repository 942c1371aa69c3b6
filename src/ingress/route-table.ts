import { PathTree, type PathType } from "./path-tree.ts";
import { wildcardOf } from "./request-host.ts";

/** One path in a rule of an Ingress. */
interface Route<Backend> {
  /** Exact, `*.suffix`, or undefined for every host; in lower case. */
  readonly host: string | undefined;
  readonly path: string;
  readonly pathType: PathType;
  readonly backend: Backend;
}

/** Serves a host's requests that match none of its paths. */
interface DefaultRoute<Backend> {
  /** The hosts in the same Ingress's rules that its namespace owns. */
  readonly hosts: readonly (string | undefined)[];
  readonly backend: Backend;
}

interface HostRoutes<Backend> {
  readonly paths: PathTree<Backend>;
  fallback: Backend | undefined;
}

/**
 * All routes, compiled and immutable. A request uses one bucket: its exact host, else its wildcard,
 * else the rules without a host. The bucket's longest path wins, else the bucket's default; the
 * global default serves only hosts without a rule (KEP-1453). A missed path never falls through to
 * a wider host: the owner of `*.example.com` gets no requests for `a.example.com`.
 */
export class RouteTable<Backend> {
  readonly #hosts = new Map<string | undefined, HostRoutes<Backend>>();
  #fallback: Backend | undefined;
  #hasWildcards = false;

  /** A host with a rule uses only its own rules, even if none of them has a usable backend. */
  addHost(host: string | undefined): void {
    this.#routesOf(host);
  }

  /** Call in order of precedence. False if a route already has this host, type and path. */
  add({ host, path, pathType, backend }: Route<Backend>): boolean {
    return this.#routesOf(host).paths.add(pathType, path, backend);
  }

  /** Call in order of precedence: a host's first default stays. */
  addDefault({ hosts, backend }: DefaultRoute<Backend>): void {
    for (const host of hosts) this.#routesOf(host).fallback ??= backend;
    this.#fallback ??= backend;
  }

  /**
   * `host` comes from `hostForMatching`, `path` from `requestPathOf`; undefined for targets without
   * one (`OPTIONS *`).
   */
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
