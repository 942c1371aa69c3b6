import { Counter, Gauge, type Registry } from "prom-client";

/** The current resumable sessions. */
export interface ResumableCounts {
  readonly attached: number;
  /** Sessions that lost their connection and wait for the next one. */
  readonly away: number;
  /** Our sessions with nodes that agreed to resumption. */
  readonly upstream: number;
  readonly heldBytes: number;
}

/** Metrics of sessions that outlive their connections. */
export class ResumptionMetrics {
  readonly #offers: Counter<"answer">;
  readonly #resumptions: Counter<"result">;
  readonly #ends: Counter<"end">;
  readonly #upstream: Counter<"event">;
  readonly #relays: Counter<"result">;
  #relayed: () => number = () => 0;
  #counts: () => ResumableCounts = () => ({ attached: 0, away: 0, upstream: 0, heldBytes: 0 });

  constructor(registry: Registry) {
    const registers = [registry];
    this.#offers = new Counter({
      name: "sluice_resumable_offers_total",
      help: "Offers of clients to make a session resumable: agreed, or why not.",
      labelNames: ["answer"],
      registers,
    });
    this.#resumptions = new Counter({
      name: "sluice_session_resumptions_total",
      help: "Requests to resume a session over a new connection: resumed, or why they were refused.",
      labelNames: ["result"],
      registers,
    });
    this.#ends = new Counter({
      name: "sluice_resumable_sessions_ended_total",
      help: "Ended resumable sessions: completed, ended by one side, expired, or ended by a protocol error.",
      labelNames: ["end"],
      registers,
    });
    this.#upstream = new Counter({
      name: "sluice_node_session_connections_total",
      help: "Connections of resumable sessions with nodes: lost, or resumed by a new one.",
      labelNames: ["event"],
      registers,
    });
    this.#relays = new Counter({
      name: "sluice_replica_relays_total",
      help: "Resumptions of sessions that another replica owns, by result: connected, gone, silent, or too-many.",
      labelNames: ["result"],
      registers,
    });
    const relayed = () => this.#relayed();
    new Gauge({
      name: "sluice_replica_relays",
      help: "Sessions of other replicas that this replica relays.",
      registers,
      collect() {
        this.set(relayed());
      },
    });
    const counts = () => this.#counts();
    new Gauge({
      name: "sluice_resumable_node_sessions",
      help: "Resumable sessions between this gateway and nodes that are Sluices.",
      registers,
      collect() {
        this.set(counts().upstream);
      },
    });
    new Gauge({
      name: "sluice_resumable_sessions",
      help: "Resumable sessions with a connection (attached) or waiting for one (away).",
      labelNames: ["state"],
      registers,
      collect() {
        const { attached, away } = counts();
        this.set({ state: "attached" }, attached);
        this.set({ state: "away" }, away);
      },
    });
    new Gauge({
      name: "sluice_resumable_held_bytes",
      help: "Bytes held for resumable sessions: sent but not acknowledged, or received but not consumed.",
      registers,
      collect() {
        this.set(counts().heldBytes);
      },
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
    this.#relays.inc({ result });
  }

  offered(answer: string): void {
    this.#offers.inc({ answer });
  }

  resumption(result: string): void {
    this.#resumptions.inc({ result });
  }

  upstream(event: "lost" | "resumed"): void {
    this.#upstream.inc({ event });
  }

  ended(end: string): void {
    this.#ends.inc({ end });
  }
}
