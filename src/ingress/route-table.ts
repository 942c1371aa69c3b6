import { wildcardOf } from "./ingress-request.ts";

/** A candidate at one host and path. */
interface PlacedRoute<Route> {
  /** Exact, `*.suffix`, or undefined for every host; in lower case. */
  readonly host: string | undefined;
  readonly path: string;
  readonly pathType: PathType;
  readonly route: Route;
  /** The candidate may refuse requests for its host and path; they go to the next candidate. */
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

  /** A host with a rule uses only its own rules, even if no rule has a usable backend. */
  addHost(host: string | undefined): void {
    this.#routesOf(host);
  }

  /**
   * Call this in order of precedence. False if an earlier route takes all requests of this host,
   * type and path.
   */
  add({ host, path, pathType, route, isConditional = false }: PlacedRoute<Route>): boolean {
    return this.#routesOf(host).paths.add(pathType, path, route, isConditional);
  }

  /** Call this in order of precedence: a host's first default stays. */
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
    const named = this.#hosts.get(host) ?? (this.#hasWildcards ? this.#wildcardRoutes(host) : undefined);
    const routes = named ?? this.#hosts.get(undefined);
    const matched = path === undefined ? undefined : routes?.paths.match(path, accepts);
    return matched ?? routes?.fallback ?? (named === undefined ? this.#fallback : undefined);
  }

  #wildcardRoutes(host: string): HostRoutes<Route> | undefined {
    const wildcard = wildcardOf(host);
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

export type PathType = "Exact" | "Prefix" | "ImplementationSpecific";

interface Element<Route> {
  /** The prefix rules that end here. */
  candidates: Candidate<Route> | undefined;
  children: Map<string, Element<Route>> | undefined;
}

/**
 * One host's paths (KEP-1453). Exact beats Prefix, the longest Prefix wins, the first of equal
 * rules stays. If no candidate of a path accepts the request, the next shorter path's are asked. A
 * lookup's steps depend on the path's elements, not on the number of rules.
 */
class PathTree<Route> {
  readonly #exact = new Map<string, Candidate<Route>>();
  readonly #root: Element<Route> = { candidates: undefined, children: undefined };

  /**
   * Call this in order of precedence. False if an earlier rule takes all of the route's requests.
   */
  add(pathType: PathType, path: string, route: Route, isConditional: boolean): boolean {
    if (pathType === "Exact") {
      const candidates = withCandidate(this.#exact.get(path), {
        value: route,
        pathLength: path.length,
        isConditional,
      });
      if (candidates !== undefined) this.#exact.set(path, candidates);
      return candidates !== undefined;
    }
    // ImplementationSpecific means Prefix here, and an empty path matches everything.
    return this.#addPrefix(path === "" ? "/" : path, route, isConditional);
  }

  /** `path` begins with `/`. */
  match(path: string, accepts: (route: Route) => boolean): Route | undefined {
    return firstOf(this.#exact.get(path), accepts) ?? this.#longestPrefix(path, accepts);
  }

  #addPrefix(path: string, route: Route, isConditional: boolean): boolean {
    let element = this.#root;
    for (const name of elementsOf(path)) {
      element.children ??= new Map();
      let child = element.children.get(name);
      if (child === undefined) {
        child = { candidates: undefined, children: undefined };
        element.children.set(name, child);
      }
      element = child;
    }
    const pathLength = path.length;
    const candidates = withCandidate(element.candidates, { value: route, pathLength, isConditional });
    if (candidates !== undefined) element.candidates = candidates;
    return candidates !== undefined;
  }

  #longestPrefix(path: string, accepts: (route: Route) => boolean): Route | undefined {
    let element = this.#root;
    let found = firstOf(element.candidates, accepts);
    let start = 1;
    while (element.children !== undefined && start <= path.length) {
      const slash = path.indexOf("/", start);
      const end = slash === -1 ? path.length : slash;
      const child = element.children.get(path.slice(start, end));
      if (child === undefined) break;
      element = child;
      found = firstOf(element.candidates, accepts) ?? found;
      start = end + 1;
    }
    return found;
  }
}

/** A rule path's elements, without a trailing slash. */
function elementsOf(path: string): string[] {
  const trimmed = path.endsWith("/") ? path.slice(1, -1) : path.slice(1);
  return trimmed === "" && path.length <= 1 ? [] : trimmed.split("/");
}

/**
 * The candidates of one place in a table, in order of precedence: the longer path of `/foo` and
 * `/foo/` first, then in the order in which they were added.
 */
interface Candidate<Value> {
  readonly value: Value;
  readonly pathLength: number;
  /** The candidate may refuse a request, which then goes to the next one. */
  readonly isConditional: boolean;
  readonly next: Candidate<Value> | undefined;
}

/** The list with one more candidate; undefined if one before it takes every request. */
function withCandidate<Value>(
  list: Candidate<Value> | undefined,
  added: Omit<Candidate<Value>, "next">,
): Candidate<Value> | undefined {
  if (list === undefined || list.pathLength < added.pathLength) return before(list, added);
  if (!list.isConditional) return undefined;
  const next = withCandidate(list.next, added);
  return next && before(next, list);
}

/** Written out, not spread: lookups took twice as long on spread copies. */
function before<Value>(
  next: Candidate<Value> | undefined,
  { value, pathLength, isConditional }: Omit<Candidate<Value>, "next">,
): Candidate<Value> {
  return { value, pathLength, isConditional, next };
}

/** The first value that takes every request, or that `accepts`. */
function firstOf<Value>(
  list: Candidate<Value> | undefined,
  accepts: (value: Value) => boolean,
): Value | undefined {
  for (let each = list; each !== undefined; each = each.next) {
    if (!each.isConditional || accepts(each.value)) return each.value;
  }
  return undefined;
}
