import type { Registry } from "prom-client";
import { counter, gauge, histogram, type MetricsOf, register } from "./metric-table.ts";

const BUCKETS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];

export const QUOTA_FAMILIES = {
  up: gauge(
    "sluice_quota_store_up",
    "1 if the quota store answers; 0: it is unreachable, and quotaStore.onFailure decides.",
  ),
  decisions: counter(
    "sluice_quota_decisions_total",
    "Quota decisions: granted or refused by the store; allowed or denied while it was unreachable.",
    { result: ["granted", "refused", "allowed", "denied"] },
  ),
  calls: histogram(
    "sluice_quota_store_call_duration_seconds",
    "Duration of calls to the quota store, failed ones included.",
    [],
    BUCKETS_SECONDS,
  ),
};

/** The quota store's metrics, in the process that counts for this replica. */
export class QuotaMetrics {
  readonly #metrics: MetricsOf<typeof QUOTA_FAMILIES>;

  constructor(registry: Registry, isUp: () => boolean) {
    this.#metrics = register(registry, QUOTA_FAMILIES, { up: (metric) => metric.set(isUp() ? 1 : 0) });
  }

  decided(result: "granted" | "refused" | "allowed" | "denied"): void {
    this.#metrics.decisions.inc({ result });
  }

  called(seconds: number): void {
    this.#metrics.calls.observe(seconds);
  }
}
