import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import { Counter, Gauge, type Registry } from "prom-client";
import type { HistogramExemplars } from "./exemplars.ts";
import { RouteMetrics, type RouteNames } from "./route-metrics.ts";

/** Metrics of Ingress traffic. No label contains a host, a path or a name that a client chooses. */
export class IngressMetrics {
  /**
   * Requests to be added to the counter, by protocol and code: its labels cost more than a
   * request's other bookkeeping.
   */
  readonly #uncounted = { "http/1.1": new Map<number, number>(), h2: new Map<number, number>() };
  readonly #routeMetrics: RouteMetrics;
  readonly #endpointRetries: Counter;
  readonly #accessLogLines: Counter<"result">;
  readonly #routes: Gauge;
  readonly #problems: Gauge<"reason">;
  readonly #reloads: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    const uncounted = this.#uncounted;
    new Counter({
      name: "sluice_ingress_requests_total",
      help: "Requests of the ingress listeners by HTTP version and response code; an upgrade counts when it is answered.",
      labelNames: ["protocol", "code"],
      registers,
      collect() {
        for (const protocol of ["http/1.1", "h2"] as const) {
          for (const [code, count] of uncounted[protocol]) this.inc({ protocol, code: String(code) }, count);
          uncounted[protocol].clear();
        }
      },
    });
    this.#routeMetrics = new RouteMetrics(registry);
    this.#endpointRetries = new Counter({
      name: "sluice_ingress_endpoint_retries_total",
      help: "Requests tried on another endpoint because one refused the connection.",
      registers,
    });
    this.#accessLogLines = new Counter({
      name: "sluice_ingress_access_log_lines_total",
      help: "Lines of the access log by result: stored, or lost because too many waited.",
      labelNames: ["result"],
      registers,
    });
    this.#routes = new Gauge({
      name: "sluice_ingress_objects",
      help: "Ingresses that the active routes were compiled from.",
      // Workers serve the same routes.
      aggregator: "max",
      registers,
    });
    this.#problems = new Gauge({
      name: "sluice_ingress_problems",
      help: "Problems of Ingresses: fields not served as written, hosts taken by another namespace; by the Event's reason.",
      labelNames: ["reason"],
      aggregator: "max",
      registers,
    });
    this.#reloads = new Counter({
      name: "sluice_ingress_reloads_total",
      help: "How often routes were compiled and activated.",
      registers,
    });
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
    this.#accessLogLines.inc({ result }, count);
  }

  endpointRetried(): void {
    this.#endpointRetries.inc();
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
    this.#routes.set(ingresses);
    this.problemsReplaced(reasons);
    this.#reloads.inc();
  }

  /** One reason for each present problem. */
  problemsReplaced(reasons: readonly string[]): void {
    this.#problems.reset();
    for (const reason of reasons) this.#problems.inc({ reason });
  }
}
