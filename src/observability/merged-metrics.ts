import type { FaultPlace } from "@sluice/client/internal/observability/faults";
import { AggregatorRegistry, Registry } from "prom-client";
import { counter, gauge, type MetricsOf, register } from "./metric-table.ts";
import { type Exemplar, openMetricsOf } from "./open-metrics.ts";
import { countFaults, QuotaMetrics, ReloadMetrics } from "./operations-metrics.ts";

export const WORKER_FAMILIES = {
  ready: gauge("sluice_workers_ready", "Worker processes that serve."),
  ended: counter(
    "sluice_workers_ended_total",
    "Worker processes that are gone: crashed and replaced, or asked to end.",
    { cause: ["crash", "shutdown"] },
  ),
  refused: counter(
    "sluice_workers_connections_refused_total",
    "Connections that were closed before any worker got them, because their address had too many.",
  ),
};

/** One process's metric, as data. */
export interface MetricSnapshot {
  readonly type?: unknown;
  readonly exemplars?: readonly Exemplar[];
}
type Snapshot = readonly MetricSnapshot[];
/** Kept after the process that counted them has ended. */
const LASTING = ["counter", "histogram"];

/**
 * Merges the metrics of several processes: sums them, or applies a gauge's `aggregator`. Keeps the
 * counts of ended processes, because a falling counter looks like a restart of all.
 */
export class MergedMetrics {
  readonly #own = new Registry();
  /** Metrics that workers have, too. */
  readonly #shared = new Registry();
  readonly #internalErrors = countFaults(this.#shared);
  /** This process reads the configuration for all workers. */
  readonly reloads = new ReloadMetrics(this.#own);
  readonly #metrics: MetricsOf<typeof WORKER_FAMILIES> = register(this.#own, WORKER_FAMILIES);
  readonly #last = new Map<object, Snapshot>();
  #gone: Snapshot = [];
  #adding: Promise<void> = Promise.resolve();

  /** The primary counts for all workers. Call it once. */
  addQuotas(isUp: () => boolean): QuotaMetrics {
    return new QuotaMetrics(this.#own, isUp);
  }

  workersReady(count: number): void {
    this.#metrics.ready.set(count);
  }

  connectionRefused(): void {
    this.#metrics.refused.inc();
  }

  /** This process caught an unexpected exception. */
  internalError(where: FaultPlace): void {
    this.#internalErrors.inc({ where });
  }

  /** Stores a process's newest metrics. */
  seen(source: object, snapshot: Snapshot): void {
    this.#last.set(source, snapshot);
  }

  /** A process has ended: counters stay, gauges go. */
  gone(source: object, cause: "crash" | "shutdown"): void {
    this.#metrics.ended.inc({ cause });
    const last = this.#last.get(source)?.filter(({ type }) => LASTING.includes(String(type)));
    this.#last.delete(source);
    if (last === undefined) return;
    this.#adding = this.#adding.then(async () => {
      this.#gone = await merged([this.#gone, last]).getMetricsAsJSON();
    });
  }

  /** All metrics in Prometheus' text format. */
  async expose(): Promise<string> {
    await this.#adding;
    const all = merged([...this.#last.values(), this.#gone, await this.#shared.getMetricsAsJSON()]);
    return `${await all.metrics()}\n${await this.#own.metrics()}`;
  }

  /** The same in OpenMetrics, with exemplars of the running processes. */
  async exposeOpenMetrics(): Promise<string> {
    const snapshots = [...this.#last.values()].flat();
    return openMetricsOf(
      await this.expose(),
      snapshots.flatMap(({ exemplars = [] }) => exemplars),
    );
  }
}

function merged(parts: readonly Snapshot[]): Registry {
  return AggregatorRegistry.aggregate(parts.map((part) => [...part]));
}
