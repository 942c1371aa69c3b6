import { Counter, Gauge, type Registry } from "prom-client";

/** The current node counts. */
interface NodeCounts {
  readonly remembered: number;
  readonly dead: number;
  readonly avoided: Readonly<Record<string, number>>;
}

/**
 * Metrics of node health and capabilities. No label contains a node's name: /debug/nodes has the
 * names.
 */
export class NodeMetrics {
  readonly #fallbacks: Counter<"subresource" | "cause">;
  readonly #paths: Counter<"path" | "result" | "cause">;
  readonly #dialFailures: Counter;
  readonly #refusedDials: Counter;
  readonly #refusedAddresses: Counter;
  #counts: () => NodeCounts = () => ({ remembered: 0, dead: 0, avoided: {} });

  constructor(registry: Registry) {
    const registers = [registry];
    this.#fallbacks = new Counter({
      name: "sluice_node_fallbacks_total",
      help: "Sessions whose node refused the WebSocket path that it declares, and which took the next path before their client was answered.",
      labelNames: ["subresource", "cause"],
      registers,
    });
    this.#paths = new Counter({
      name: "sluice_node_path_outcomes_total",
      help: "Outcomes of nodes' WebSocket paths (command: exec and attach, tunnel: port-forward): worked, or the cause of the failure.",
      labelNames: ["path", "result", "cause"],
      registers,
    });
    this.#dialFailures = new Counter({
      name: "sluice_node_dial_failures_total",
      help: "Failed dials of nodes: unreachable, or no answer.",
      registers,
    });
    this.#refusedDials = new Counter({
      name: "sluice_node_circuit_refusals_total",
      help: "Sessions refused without a dial because their node's circuit is open.",
      registers,
    });
    this.#refusedAddresses = new Counter({
      name: "sluice_node_addresses_refused_total",
      help: "Dials of nodes refused for the node's address (kubelet.allowedAddresses, kubelet.allowAPIServerEndpoints).",
      registers,
    });
    this.#registerGauges(registers);
  }

  /** Called at every scrape. */
  observe(counts: () => NodeCounts): void {
    this.#counts = counts;
  }

  fellBack(subresource: string, cause: string): void {
    this.#fallbacks.inc({ subresource, cause });
  }

  pathSucceeded(path: string): void {
    this.#paths.inc({ path, result: "success", cause: "" });
  }

  pathFailed(path: string, cause: string): void {
    this.#paths.inc({ path, result: "failure", cause });
  }

  dialFailed(): void {
    this.#dialFailures.inc();
  }

  dialRefused(): void {
    this.#refusedDials.inc();
  }

  addressRefused(): void {
    this.#refusedAddresses.inc();
  }

  /**
   * Each worker learns about the same nodes, so the largest number is nearest to the truth, and a
   * sum would be wrong.
   */
  #registerGauges(registers: Registry[]): void {
    const counts = () => this.#counts();
    const aggregator = "max" as const;
    new Gauge({
      name: "sluice_nodes_remembered",
      help: "Nodes with learned state in memory.",
      aggregator,
      registers,
      collect() {
        this.set(counts().remembered);
      },
    });
    new Gauge({
      name: "sluice_nodes_dead",
      help: "Nodes whose circuit is open, including those being retried.",
      aggregator,
      registers,
      collect() {
        this.set(counts().dead);
      },
    });
    new Gauge({
      name: "sluice_nodes_avoiding_path",
      help: "Nodes whose WebSocket path recently failed and is skipped until its retry is due.",
      labelNames: ["path"],
      aggregator,
      registers,
      collect() {
        this.reset();
        for (const [path, number] of Object.entries(counts().avoided)) this.set({ path }, number);
      },
    });
  }
}
