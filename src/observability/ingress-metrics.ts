import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import type { Registry } from "prom-client";
import type { HistogramExemplars } from "./exemplars.ts";
import { counter, gauge, type MetricsOf, register } from "./metric-table.ts";
import { RouteMetrics, type RouteNames } from "./route-metrics.ts";

/** Workers serve the same routes: gauges show one worker's. */
export const INGRESS_FAMILIES = {
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

/** Metrics of Ingress traffic. No label contains a host, a path or a name that a client chooses. */
export class IngressMetrics {
  /**
   * Requests to be added to the counter, by protocol and code: its labels cost more than a
   * request's other bookkeeping.
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
   * `reasons` has one entry for each present problem. `routes` are oldest first; the first
   * `maxRoutes` get their own series.
   */
  routesReplaced(
    ingresses: number,
    reasons: readonly string[],
    routes: Iterable<RouteNames>,
    maxRoutes: number,
  ): void {
    this.#routeMetrics.routesReplaced(routes, maxRoutes);
    this.#metrics.ingresses.set(ingresses);
    this.problemsReplaced(reasons);
    this.#metrics.reloads.inc();
  }

  /** One reason for each present problem. */
  problemsReplaced(reasons: readonly string[]): void {
    this.#metrics.problems.reset();
    for (const reason of reasons) this.#metrics.problems.inc({ reason });
  }
}
