import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** What is counted of Ingress traffic. No label holds a host, a path or a name that a client chooses. */
export class IngressMetrics {
  /** Not yet in the counter, by protocol and code: its labels cost more than the rest of a request's bookkeeping. */
  readonly #uncounted = { "http/1.1": new Map<number, number>(), h2: new Map<number, number>() };
  readonly #durations: Histogram;
  readonly #endpointRetries: Counter;
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
    this.#durations = new Histogram({
      name: "sluice_ingress_request_duration_seconds",
      help: "From a request's head to the end of its response.",
      buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30],
      registers,
    });
    this.#endpointRetries = new Counter({
      name: "sluice_ingress_endpoint_retries_total",
      help: "Requests tried on another endpoint because one refused the connection.",
      registers,
    });
    this.#routes = new Gauge({
      name: "sluice_ingress_objects",
      help: "Ingresses that the routes in force are made of.",
      // Workers serve the same routes.
      aggregator: "max",
      registers,
    });
    this.#problems = new Gauge({
      name: "sluice_ingress_problems",
      help: "What Ingresses say that is not served as written, or was named first in another namespace, by the reason of its Event.",
      labelNames: ["reason"],
      aggregator: "max",
      registers,
    });
    this.#reloads = new Counter({
      name: "sluice_ingress_reloads_total",
      help: "Times that routes were compiled and put in force.",
      registers,
    });
  }

  requestEnded(protocol: "http/1.1" | "h2", code: number, seconds: number): void {
    this.#count(protocol, code);
    this.#durations.observe(seconds);
  }

  upgradeAnswered(protocol: "http/1.1" | "h2", code: number): void {
    this.#count(protocol, code);
  }

  #count(protocol: "http/1.1" | "h2", code: number): void {
    const counts = this.#uncounted[protocol];
    counts.set(code, (counts.get(code) ?? 0) + 1);
  }

  endpointRetried(): void {
    this.#endpointRetries.inc();
  }

  /** `reasons`: of each problem that there is now. */
  routesReplaced(ingresses: number, reasons: readonly string[]): void {
    this.#routes.set(ingresses);
    this.#problems.reset();
    for (const reason of reasons) this.#problems.inc({ reason });
    this.#reloads.inc();
  }
}
