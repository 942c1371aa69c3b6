import type { Registry } from "prom-client";
import { counter, type MetricsOf, register } from "./metric-table.ts";

export const TRACE_FAMILIES = {
  spans: counter(
    "sluice_trace_spans_total",
    "Sampled spans by result: ended, exported to the collector, or failed to export.",
    ["result"],
  ),
};

/**
 * Metrics of OpenTelemetry spans. An ended span that was neither exported nor failed still waits,
 * or was dropped from a full queue.
 */
export class TraceMetrics {
  readonly #metrics: MetricsOf<typeof TRACE_FAMILIES>;

  constructor(registry: Registry) {
    this.#metrics = register(registry, TRACE_FAMILIES);
  }

  spans(result: "ended" | "exported" | "failed", count: number): void {
    this.#metrics.spans.inc({ result }, count);
  }
}
