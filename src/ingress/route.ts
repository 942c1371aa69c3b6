import { type HeaderLine, type HeaderList, headerValues } from "@sluice/client/internal/http/header-list";
import type { ApiObject } from "../api/api-object.ts";
import type { RouteNames } from "../observability/ingress-metrics.ts";
import type { PathRewrite } from "./path-rewrite.ts";
import type { RouteOptions } from "./route-options.ts";

/** The object that asks for a route, in any API; Events and log lines about the route name it. */
export type RouteOrigin = Pick<ApiObject, "apiVersion" | "kind" | "metadata">;

/** A candidate for the requests of one host and path. A compiler for each API creates them. */
export interface Route {
  /** Absent: host and path are enough to match. */
  readonly match?: RequestMatch | undefined;
  readonly filters: RouteFilters;
  /** One of these gets the request, by weight. At least one has a weight above 0. */
  readonly backends: readonly WeightedBackend[];
}

/** What a request must have besides its host and path; all conditions must match. */
interface RequestMatch {
  readonly method?: string | undefined;
  /** Header names in any case, with the complete value of the header's first line. */
  readonly headers?: readonly HeaderLine[] | undefined;
}

/** What happens to a request on its way to a Service. */
export interface RouteFilters {
  /** Redirects plain HTTP to https with 308. */
  readonly redirectsToTls: boolean;
  /** Rewrites the path; absent means unchanged. */
  readonly rewrite?: PathRewrite | undefined;
}

interface WeightedBackend {
  readonly weight: number;
  readonly backend: RouteBackend;
}

export type RouteBackend = ServiceRoute | StreamingRoute;

export interface ServiceRoute {
  readonly type: "service";
  readonly origin: RouteOrigin;
  readonly names: RouteNames;
  readonly namespace: string;
  readonly service: string;
  /** The Service port's number or name. */
  readonly port: number | string;
  readonly options: RouteOptions;
  /** The path of affinity's cookies. */
  readonly cookiePath: string;
}

/** The API-server leg, reached under a host and a path prefix that is stripped. */
export interface StreamingRoute {
  readonly type: "streaming";
  readonly origin: RouteOrigin;
  readonly names: RouteNames;
  /** A gateway's name in the configuration. */
  readonly name: string;
  /** The segments to strip from the path. */
  readonly strippedSegments: number;
}

/** The part of a request that a candidate judges besides host and path. */
interface JudgedRequest {
  readonly method: string;
  readonly headers: HeaderList;
}

export function accepts({ match }: Route, { method, headers }: JudgedRequest): boolean {
  if (match === undefined) return true;
  if (match.method !== undefined && match.method !== method) return false;
  return (match.headers ?? []).every(([name, value]) => headerValues(headers, name)[0] === value);
}

/** The backend for one request; `random` is at least 0 and less than 1. */
export function backendOf({ backends }: Route, random: () => number = Math.random): RouteBackend | undefined {
  if (backends.length === 1) return backends[0]?.backend;
  let left = random() * backends.reduce((sum, { weight }) => sum + weight, 0);
  for (const { weight, backend } of backends) {
    left -= weight;
    if (left < 0) return backend;
  }
  return undefined;
}
