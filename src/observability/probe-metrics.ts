import type { Registry } from "prom-client";
import { counter, histogram, type MetricsOf, register } from "./metric-table.ts";

/** Identifies a probe with the kubelet's labels. */
export interface ProbeLabels {
  readonly probe_type: string;
  readonly container: string;
  readonly pod: string;
  readonly namespace: string;
  readonly pod_uid: string;
}

const RESULTS = ["successful", "failed", "unknown"] as const;
type ProbeResultLabel = (typeof RESULTS)[number];

/** prometheus/client_golang's default buckets, as in the kubelet. */
const BUCKETS_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const PROBE_FAMILIES = {
  total: counter(
    "prober_probe_total",
    "Cumulative number of a liveness, readiness or startup probe for a container by result.",
    ["probe_type", "result", "container", "pod", "namespace", "pod_uid"],
  ),
  seconds: histogram(
    "prober_probe_duration_seconds",
    "Duration in seconds for a probe response.",
    ["probe_type", "container", "pod", "namespace"],
    BUCKETS_SECONDS,
  ),
};

/** One worker's series; `remove` deletes them. */
export interface ProbeSeries {
  count(result: ProbeResultLabel, seconds: number): void;
  remove(): void;
}

/**
 * The kubelet's probe metrics: its names, labels and help. Series exist while their worker runs.
 */
export class ProbeMetrics {
  readonly #metrics: MetricsOf<typeof PROBE_FAMILIES>;

  constructor(registry: Registry) {
    this.#metrics = register(registry, PROBE_FAMILIES);
  }

  series(labels: ProbeLabels): ProbeSeries {
    const { probe_type, container, pod, namespace } = labels;
    const duration = { probe_type, container, pod, namespace };
    return {
      count: (result, seconds) => {
        this.#metrics.total.inc({ ...labels, result });
        // As in the kubelet: a failure's duration measures nothing.
        if (result !== "failed") this.#metrics.seconds.observe(duration, seconds);
      },
      remove: () => {
        for (const result of RESULTS) this.#metrics.total.remove({ ...labels, result });
        this.#metrics.seconds.remove(duration);
      },
    };
  }
}
