import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import type { Registry } from "prom-client";
import { HistogramExemplars } from "./exemplars.ts";
import { counter, gauge, histogram, type MetricsOf, register } from "./metric-table.ts";

/** The labels of a path's backend: the namespace, the Ingress and its Service. */
export interface RouteNames {
  readonly namespace: string;
  readonly ingress: string;
  readonly service: string;
}

const BUCKETS_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30];
const LABELS = ["namespace", "ingress", "service"] as const;
/** Kubernetes names have no underscore. */
const UNMATCHED: RouteNames = { namespace: "_none", ingress: "_none", service: "_none" };
const OTHER: RouteNames = { namespace: "_other", ingress: "_other", service: "_other" };

export const ROUTE_FAMILIES = {
  requests: counter(
    "sluice_ingress_route_requests_total",
    "Requests of the ingress listeners by Ingress, Service and class of the response code; _none: no rule matched; _other: past limits.maxIngressMetricRoutes.",
    [...LABELS, "code"],
  ),
  durations: histogram(
    "sluice_ingress_request_duration_seconds",
    "Time from a request's head to the end of its response, by Ingress and Service.",
    LABELS,
    BUCKETS_SECONDS,
  ),
  unlisted: gauge(
    "sluice_ingress_routes_without_series",
    "Pairs of Ingress and Service whose requests are counted as _other.",
    [],
    "max",
  ),
};

interface Series {
  readonly names: RouteNames;
  /** Requests to be added to the counter, by the first digit of their code. */
  readonly uncounted: number[];
  readonly durations: { observe(seconds: number): void };
}

/**
 * Requests by Ingress and Service. The oldest Ingresses have their own series, the same in every
 * worker and replica; the others share one.
 */
export class RouteMetrics {
  readonly exemplars = new HistogramExemplars(ROUTE_FAMILIES.durations.name, BUCKETS_SECONDS);
  readonly #metrics: MetricsOf<typeof ROUTE_FAMILIES>;
  readonly #unmatched: Series;
  readonly #other: Series;
  #series = new Map<string, Series>();
  /** Looks series up by identity, which saves joining the names for every request. */
  #known = new WeakMap<RouteNames, Series>();

  constructor(registry: Registry) {
    this.#metrics = register(registry, ROUTE_FAMILIES, { requests: () => this.#flush() });
    this.#unmatched = this.#seriesOf(UNMATCHED);
    this.#other = this.#seriesOf(OTHER);
  }

  /** Gives the first `maxRoutes` their own series, and removes those of deleted routes. */
  routesReplaced(routes: Iterable<RouteNames>, maxRoutes: number): void {
    this.#flush();
    const named = new Map<string, RouteNames>();
    for (const route of routes) named.set(keyOf(route), route);
    const kept = [...named].slice(0, maxRoutes);
    const before = this.#series;
    this.#series = new Map(kept.map(([key, names]) => [key, before.get(key) ?? this.#seriesOf(names)]));
    for (const [key, series] of before) if (!this.#series.has(key)) this.#remove(series.names);
    this.#known = new WeakMap();
    this.#metrics.unlisted.set(named.size - kept.length);
  }

  /** `seconds` is undefined for an upgrade, whose duration is not a request's. */
  requestEnded(
    names: RouteNames | undefined,
    code: number,
    seconds: number | undefined,
    trace?: RequestTrace,
  ): void {
    const series = names === undefined ? this.#unmatched : this.#find(names);
    const digit = Math.floor(code / 100);
    series.uncounted[digit] = (series.uncounted[digit] ?? 0) + 1;
    if (seconds === undefined) return;
    series.durations.observe(seconds);
    if (trace !== undefined) this.exemplars.observe({ ...series.names }, seconds, trace);
  }

  #find(names: RouteNames): Series {
    let series = this.#known.get(names);
    if (series === undefined) {
      series = this.#series.get(keyOf(names)) ?? this.#other;
      this.#known.set(names, series);
    }
    return series;
  }

  #seriesOf({ namespace, ingress, service }: RouteNames): Series {
    const names = { namespace, ingress, service };
    return { names, uncounted: [], durations: this.#metrics.durations.labels(names) };
  }

  #flush(): void {
    for (const { names, uncounted } of [this.#unmatched, this.#other, ...this.#series.values()]) {
      uncounted.forEach((count, digit) => {
        // 0 means that the client left before there was a code.
        this.#metrics.requests.inc({ ...names, code: digit === 0 ? "none" : `${digit}xx` }, count);
      });
      uncounted.length = 0;
    }
  }

  #remove(names: RouteNames): void {
    for (const code of ["none", "1xx", "2xx", "3xx", "4xx", "5xx"])
      this.#metrics.requests.remove({ ...names, code });
    this.#metrics.durations.remove({ ...names });
    this.exemplars.remove({ ...names });
  }
}

function keyOf({ namespace, ingress, service }: RouteNames): string {
  return `${namespace}/${ingress}/${service}`;
}
