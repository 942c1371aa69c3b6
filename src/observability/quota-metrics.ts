import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** The quota store's metrics, in the process that counts for this replica. */
export class QuotaMetrics {
  readonly #decisions: Counter<"result">;
  readonly #calls: Histogram;

  constructor(registry: Registry, isUp: () => boolean) {
    const registers = [registry];
    new Gauge({
      name: "sluice_quota_store_up",
      help: "1 if the quota store answers; 0: it is unreachable, and quotaStore.onFailure decides.",
      registers,
      collect() {
        this.set(isUp() ? 1 : 0);
      },
    });
    this.#decisions = new Counter({
      name: "sluice_quota_decisions_total",
      help: "Quota decisions: granted or refused by the store; allowed or denied while it was unreachable.",
      labelNames: ["result"],
      registers,
    });
    for (const result of ["granted", "refused", "allowed", "denied"]) this.#decisions.inc({ result }, 0);
    this.#calls = new Histogram({
      name: "sluice_quota_store_call_duration_seconds",
      help: "Duration of calls to the quota store, failed ones included.",
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
      registers,
    });
  }

  decided(result: "granted" | "refused" | "allowed" | "denied"): void {
    this.#decisions.inc({ result });
  }

  called(seconds: number): void {
    this.#calls.observe(seconds);
  }
}
