import { Counter, Gauge, type Registry } from "prom-client";

/** The state of one kind at a scrape. */
interface KindState {
  readonly kind: string;
  readonly objects: number;
  readonly staleSeconds: number;
  readonly isSynced: boolean;
}

/** Metrics of the live API's lists and watches. */
export class ClusterMetrics {
  readonly #events: Counter<"kind">;
  readonly #badObjects: Counter<"kind">;
  readonly #lists: Counter<"kind">;
  readonly #watchEnds: Counter<"kind" | "how">;
  readonly #reads: Counter<"kind" | "outcome">;
  readonly #featureConflicts: Counter;
  readonly #verdicts: Counter<"reason">;
  readonly #states: (() => readonly KindState[])[] = [];

  constructor(registry: Registry) {
    const registers = [registry];
    this.#events = new Counter({
      name: "sluice_cluster_events_total",
      help: "Events received from watches of the Kubernetes API.",
      labelNames: ["kind"],
      registers,
    });
    this.#badObjects = new Counter({
      name: "sluice_cluster_bad_objects_total",
      help: "Malformed objects received from the Kubernetes API, counted each time. They are treated as absent.",
      labelNames: ["kind"],
      registers,
    });
    this.#lists = new Counter({
      name: "sluice_cluster_lists_total",
      help: "Complete lists from the Kubernetes API: one at the start, and one whenever a watch cannot resume.",
      labelNames: ["kind"],
      registers,
    });
    this.#watchEnds = new Counter({
      name: "sluice_cluster_watch_ends_total",
      help: "Ends of lists and watches: ended by the server in its time, gone (410), malformed, refused, or broken off.",
      labelNames: ["kind", "how"],
      registers,
    });
    this.#reads = new Counter({
      name: "sluice_cluster_reads_through_total",
      help: "Single objects read from the Kubernetes API because no watch had delivered them.",
      labelNames: ["kind", "outcome"],
      registers,
    });
    this.#featureConflicts = new Counter({
      name: "sluice_declared_feature_conflicts_total",
      help: "How often another writer removed features published in a node's status.declaredFeatures.",
      registers,
    });
    this.#verdicts = new Counter({
      name: "sluice_cluster_admission_verdicts_total",
      help: "Streaming requests by whether the cluster's admission may judge them. The API server carries those; none: straight to the node.",
      labelNames: ["reason"],
      registers,
    });
    this.#registerGauges(registers);
  }

  /** Called at every scrape. */
  observe(states: () => readonly KindState[]): void {
    this.#states.push(states);
  }

  event(kind: string): void {
    this.#events.inc({ kind });
  }

  badObject(kind: string): void {
    this.#badObjects.inc({ kind });
  }

  listed(kind: string): void {
    this.#lists.inc({ kind });
  }

  watchEnded(kind: string, how: string): void {
    this.#watchEnds.inc({ kind, how });
  }

  featuresRemoved(): void {
    this.#featureConflicts.inc();
  }

  readThrough(kind: string, outcome: string): void {
    this.#reads.inc({ kind, outcome });
  }

  /** `reason` is the plan's; undefined if nothing judges the request. */
  admissionJudged(reason: string | undefined): void {
    this.#verdicts.inc({ reason: reason ?? "none" });
  }

  /**
   * Every worker watches the same cluster, so gauges show the worker with the most objects, or the
   * one furthest behind.
   */
  #registerGauges(registers: Registry[]): void {
    const gauge = (
      name: string,
      help: string,
      aggregator: "max" | "min",
      pick: (state: KindState) => number,
    ) => {
      const states = () => this.#states.flatMap((each) => each());
      new Gauge({
        name,
        help,
        labelNames: ["kind"],
        aggregator,
        registers,
        collect() {
          for (const state of states()) this.set({ kind: state.kind }, pick(state));
        },
      });
    };
    gauge(
      "sluice_cluster_objects",
      "Objects of the live API held in memory.",
      "max",
      ({ objects }) => objects,
    );
    gauge(
      "sluice_cluster_stale_seconds",
      "Age of the cached state: 0 while a watch is open, otherwise the time since the API server last answered.",
      "max",
      ({ staleSeconds }) => staleSeconds,
    );
    gauge("sluice_cluster_synced", "1 once the kind was listed completely.", "min", ({ isSynced }) =>
      isSynced ? 1 : 0,
    );
  }
}
