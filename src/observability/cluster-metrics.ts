import type { Gauge, Registry } from "prom-client";
import { counter, gauge, type MetricsOf, register } from "./metric-table.ts";

/**
 * Every worker watches the same cluster, so gauges show the worker with the most objects, or the
 * one furthest behind.
 */
const CLUSTER_FAMILIES = {
  events: counter("sluice_cluster_events_total", "Events received from watches of the Kubernetes API.", [
    "kind",
  ]),
  badObjects: counter(
    "sluice_cluster_bad_objects_total",
    "Malformed objects received from the Kubernetes API, counted each time. They are treated as absent.",
    ["kind"],
  ),
  lists: counter(
    "sluice_cluster_lists_total",
    "Complete lists from the Kubernetes API: one at the start, and one whenever a watch cannot resume.",
    ["kind"],
  ),
  watchEnds: counter(
    "sluice_cluster_watch_ends_total",
    "Ends of lists and watches: ended by the server in its time, gone (410), malformed, refused, or broken off.",
    ["kind", "how"],
  ),
  reads: counter(
    "sluice_cluster_reads_through_total",
    "Single objects read from the Kubernetes API because no watch had delivered them.",
    ["kind", "outcome"],
  ),
  featureConflicts: counter(
    "sluice_declared_feature_conflicts_total",
    "How often another writer removed features published in a node's status.declaredFeatures.",
  ),
  verdicts: counter(
    "sluice_cluster_admission_verdicts_total",
    "Streaming requests by whether the cluster's admission may judge them. The API server carries those; none: straight to the node.",
    ["reason"],
  ),
  objects: gauge("sluice_cluster_objects", "Objects of the live API held in memory.", ["kind"], "max"),
  staleSeconds: gauge(
    "sluice_cluster_stale_seconds",
    "Age of the cached state: 0 while a watch is open, otherwise the time since the API server last answered.",
    ["kind"],
    "max",
  ),
  synced: gauge("sluice_cluster_synced", "1 once the kind was listed completely.", ["kind"], "min"),
};

/** The state of one kind at a scrape. */
interface KindState {
  readonly kind: string;
  readonly objects: number;
  readonly staleSeconds: number;
  readonly isSynced: boolean;
}

/** Metrics of the live API's lists and watches. */
export class ClusterMetrics {
  readonly #metrics: MetricsOf<typeof CLUSTER_FAMILIES>;
  readonly #states: (() => readonly KindState[])[] = [];

  constructor(registry: Registry) {
    const each = (pick: (state: KindState) => number) => (metric: Gauge<"kind">) => {
      for (const state of this.#states.flatMap((list) => list()))
        metric.set({ kind: state.kind }, pick(state));
    };
    this.#metrics = register(registry, CLUSTER_FAMILIES, {
      objects: each(({ objects }) => objects),
      staleSeconds: each(({ staleSeconds }) => staleSeconds),
      synced: each(({ isSynced }) => (isSynced ? 1 : 0)),
    });
  }

  /** Called at every scrape. */
  observe(states: () => readonly KindState[]): void {
    this.#states.push(states);
  }

  event(kind: string): void {
    this.#metrics.events.inc({ kind });
  }

  badObject(kind: string): void {
    this.#metrics.badObjects.inc({ kind });
  }

  listed(kind: string): void {
    this.#metrics.lists.inc({ kind });
  }

  watchEnded(kind: string, how: string): void {
    this.#metrics.watchEnds.inc({ kind, how });
  }

  featuresRemoved(): void {
    this.#metrics.featureConflicts.inc();
  }

  readThrough(kind: string, outcome: string): void {
    this.#metrics.reads.inc({ kind, outcome });
  }

  /** `reason` is the plan's; undefined if nothing judges the request. */
  admissionJudged(reason: string | undefined): void {
    this.#metrics.verdicts.inc({ reason: reason ?? "none" });
  }
}
