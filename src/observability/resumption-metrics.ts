import type { Registry } from "prom-client";
import { counter, gauge, type MetricsOf, register } from "./metric-table.ts";

/** The current resumable sessions. */
export interface ResumableCounts {
  readonly attached: number;
  /** Sessions that lost their connection and wait for the next one. */
  readonly away: number;
  /** Our sessions with nodes that agreed to resumption. */
  readonly upstream: number;
  readonly heldBytes: number;
}

const RESUMPTION_FAMILIES = {
  offers: counter(
    "sluice_resumable_offers_total",
    "Offers of clients to make a session resumable: agreed, or why not.",
    ["answer"],
  ),
  resumptions: counter(
    "sluice_session_resumptions_total",
    "Requests to resume a session over a new connection: resumed, or why they were refused.",
    ["result"],
  ),
  ends: counter(
    "sluice_resumable_sessions_ended_total",
    "Ended resumable sessions: completed, ended by one side, expired, or ended by a protocol error.",
    ["end"],
  ),
  upstream: counter(
    "sluice_node_session_connections_total",
    "Connections of resumable sessions with nodes: lost, or resumed by a new one.",
    ["event"],
  ),
  relays: counter(
    "sluice_replica_relays_total",
    "Resumptions of sessions that another replica owns, by result: connected, gone, silent, or too-many.",
    ["result"],
  ),
  relayed: gauge("sluice_replica_relays", "Sessions of other replicas that this replica relays."),
  nodeSessions: gauge(
    "sluice_resumable_node_sessions",
    "Resumable sessions between this gateway and nodes that are Sluices.",
  ),
  sessions: gauge(
    "sluice_resumable_sessions",
    "Resumable sessions with a connection (attached) or waiting for one (away).",
    ["state"],
  ),
  heldBytes: gauge(
    "sluice_resumable_held_bytes",
    "Bytes held for resumable sessions: sent but not acknowledged, or received but not consumed.",
  ),
};

/** Metrics of sessions that outlive their connections. */
export class ResumptionMetrics {
  readonly #metrics: MetricsOf<typeof RESUMPTION_FAMILIES>;
  #relayed: () => number = () => 0;
  #counts: () => ResumableCounts = () => ({ attached: 0, away: 0, upstream: 0, heldBytes: 0 });

  constructor(registry: Registry) {
    this.#metrics = register(registry, RESUMPTION_FAMILIES, {
      relayed: (metric) => metric.set(this.#relayed()),
      nodeSessions: (metric) => metric.set(this.#counts().upstream),
      sessions: (metric) => {
        const { attached, away } = this.#counts();
        metric.set({ state: "attached" }, attached);
        metric.set({ state: "away" }, away);
      },
      heldBytes: (metric) => metric.set(this.#counts().heldBytes),
    });
  }

  /** Called at every scrape. */
  observe(counts: () => ResumableCounts): void {
    this.#counts = counts;
  }

  /** Called at every scrape. */
  observeRelays(relayed: () => number): void {
    this.#relayed = relayed;
  }

  relayed(result: string): void {
    this.#metrics.relays.inc({ result });
  }

  offered(answer: string): void {
    this.#metrics.offers.inc({ answer });
  }

  resumption(result: string): void {
    this.#metrics.resumptions.inc({ result });
  }

  upstream(event: "lost" | "resumed"): void {
    this.#metrics.upstream.inc({ event });
  }

  ended(end: string): void {
    this.#metrics.ends.inc({ end });
  }
}
