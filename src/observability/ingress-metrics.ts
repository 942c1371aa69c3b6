import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import type { Registry } from "prom-client";
import { counter, gauge, histogram, type MetricsOf, register } from "./metric-table.ts";
import { HistogramExemplars } from "./open-metrics.ts";

/** Workers serve the same routes: gauges show one worker's. */
const INGRESS_FAMILIES = {
  requests: counter(
    "sluice_ingress_requests_total",
    "Requests of the ingress listeners by HTTP version and response code; an upgrade counts when it is answered.",
    ["protocol", "code"],
  ),
  endpointRetries: counter(
    "sluice_ingress_endpoint_retries_total",
    "Requests tried on another endpoint because one refused the connection.",
  ),
  accessLogLines: counter(
    "sluice_ingress_access_log_lines_total",
    "Lines of the access log by result: stored, or lost because too many waited.",
    ["result"],
  ),
  ingresses: gauge(
    "sluice_ingress_objects",
    "Ingresses that the active routes were compiled from.",
    [],
    "max",
  ),
  problems: gauge(
    "sluice_ingress_problems",
    "Problems of Ingresses: fields not served as written, hosts taken by another namespace; by the Event's reason.",
    ["reason"],
    "max",
  ),
  reloads: counter("sluice_ingress_reloads_total", "How often routes were compiled and activated."),
};

const BUCKETS_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30];

const LABELS = ["namespace", "ingress", "service"] as const;

/** Kubernetes names have no underscore. */
const UNMATCHED: RouteNames = { namespace: "_none", ingress: "_none", service: "_none" };

const OTHER: RouteNames = { namespace: "_other", ingress: "_other", service: "_other" };

const ROUTE_FAMILIES = {
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

/** Metrics of Ingress traffic. No label contains a host, a path or a name that a client chooses. */
export class IngressMetrics {
  /**
   * Requests that the counter does not have yet, by protocol and code: updating its labels for each
   * request costs more than all other bookkeeping.
   */
  readonly #uncounted = { "http/1.1": new Map<number, number>(), h2: new Map<number, number>() };
  readonly #routeMetrics: RouteMetrics;
  readonly #metrics: MetricsOf<typeof INGRESS_FAMILIES>;

  constructor(registry: Registry) {
    this.#metrics = register(registry, INGRESS_FAMILIES, {
      requests: (metric) => {
        for (const protocol of ["http/1.1", "h2"] as const) {
          for (const [code, count] of this.#uncounted[protocol])
            metric.inc({ protocol, code: String(code) }, count);
          this.#uncounted[protocol].clear();
        }
      },
    });
    this.#routeMetrics = new RouteMetrics(registry);
  }

  /** `route` belongs to the matched rule. `seconds` is undefined for an upgrade. */
  requestEnded(
    protocol: "http/1.1" | "h2",
    code: number,
    route: RouteNames | undefined,
    seconds: number | undefined,
    trace?: RequestTrace,
  ): void {
    const counts = this.#uncounted[protocol];
    counts.set(code, (counts.get(code) ?? 0) + 1);
    this.#routeMetrics.requestEnded(route, code, seconds, trace);
  }

  get exemplars(): readonly HistogramExemplars[] {
    return [this.#routeMetrics.exemplars];
  }

  accessLogged(result: "stored" | "lost", count: number): void {
    this.#metrics.accessLogLines.inc({ result }, count);
  }

  endpointRetried(): void {
    this.#metrics.endpointRetries.inc();
  }

  /**
   * `routes` are oldest first; the first `maxRoutes` get their own series. Yields between steps.
   */
  *routesReplaced(ingresses: number, routes: Iterable<RouteNames>, maxRoutes: number): Generator<void, void> {
    yield* this.#routeMetrics.routesReplaced(routes, maxRoutes);
    this.#metrics.ingresses.set(ingresses);
    this.#metrics.reloads.inc();
  }

  /** One reason for each present problem. */
  problemsReplaced(reasons: readonly string[]): void {
    const counts = new Map<string, number>();
    for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    this.#metrics.problems.reset();
    for (const [reason, count] of counts) this.#metrics.problems.set({ reason }, count);
  }
}

/** The labels of a path's backend: the namespace, the Ingress and its Service. */
export interface RouteNames {
  readonly namespace: string;
  readonly ingress: string;
  readonly service: string;
}

interface Series {
  readonly names: RouteNames;
  /** Requests that the counter does not have yet, by the first digit of their code. */
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

  /**
   * Gives the first `maxRoutes` their own series, and removes those of deleted routes. Yields
   * between steps.
   */
  *routesReplaced(routes: Iterable<RouteNames>, maxRoutes: number): Generator<void, void> {
    const before = this.#series;
    const series = new Map<string, Series>();
    const unlisted = new Set<string>();
    for (const names of routes) {
      const key = keyOf(names);
      if (series.size >= maxRoutes && !series.has(key)) unlisted.add(key);
      else if (!series.has(key)) series.set(key, before.get(key) ?? this.#seriesOf(names));
      yield;
    }
    this.#series = series;
    this.#known = new WeakMap();
    this.#metrics.unlisted.set(unlisted.size);
    for (const [key, { names }] of before) {
      if (!series.has(key)) this.#remove(names);
      yield;
    }
  }

  /** `seconds` is undefined for an upgrade, whose duration is not a request's. */
  requestEnded(
    names: RouteNames | undefined,
    code: number,
    seconds: number | undefined,
    trace?: RequestTrace,
  ): void {
    const series = names === undefined ? this.#unmatched : (this.#known.get(names) ?? this.#find(names));
    const digit = Math.floor(code / 100);
    series.uncounted[digit] = (series.uncounted[digit] ?? 0) + 1;
    if (seconds === undefined) return;
    series.durations.observe(seconds);
    if (trace !== undefined) this.exemplars.observe({ ...series.names }, seconds, trace);
  }

  #find(names: RouteNames): Series {
    const series = this.#series.get(keyOf(names)) ?? this.#other;
    this.#known.set(names, series);
    return series;
  }

  #seriesOf({ namespace, ingress, service }: RouteNames): Series {
    const names = { namespace, ingress, service };
    return { names, uncounted: [], durations: this.#metrics.durations.labels(names) };
  }

  #flush(): void {
    for (const { names, uncounted } of [this.#unmatched, this.#other, ...this.#series.values()]) {
      uncounted.forEach((count, digit) => {
        // 0: the client left before there was a code.
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
