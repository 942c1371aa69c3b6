import { Counter, type Registry } from "prom-client";

/**
 * Metrics of OpenTelemetry spans. An ended span that was neither exported nor failed still waits,
 * or was dropped from a full queue.
 */
export class TraceMetrics {
  readonly #spans: Counter<"result">;

  constructor(registry: Registry) {
    this.#spans = new Counter({
      name: "sluice_trace_spans_total",
      help: "Sampled spans by result: ended, exported to the collector, or failed to export.",
      labelNames: ["result"],
      registers: [registry],
    });
  }

  spans(result: "ended" | "exported" | "failed", count: number): void {
    this.#spans.inc({ result }, count);
  }
}
