import type { Registry } from "prom-client";
import { counter, gauge, type MetricsOf, register } from "./metric-table.ts";

/** The current node counts. */
interface NodeCounts {
  readonly remembered: number;
  readonly dead: number;
  readonly avoided: Readonly<Record<string, number>>;
}

/** Each worker learns about the same nodes: their largest number is nearest to the truth. */
const OF_WORKERS = "max";

const NODE_FAMILIES = {
  fallbacks: counter(
    "sluice_node_fallbacks_total",
    "Sessions whose node refused the WebSocket path that it declares, and which took the next path before their client was answered.",
    ["subresource", "cause"],
  ),
  paths: counter(
    "sluice_node_path_outcomes_total",
    "Outcomes of nodes' WebSocket paths (command: exec and attach, tunnel: port-forward): worked, or the cause of the failure.",
    ["path", "result", "cause"],
  ),
  dialFailures: counter(
    "sluice_node_dial_failures_total",
    "Failed dials of nodes: unreachable, or no answer.",
  ),
  refusedDials: counter(
    "sluice_node_circuit_refusals_total",
    "Sessions refused without a dial because their node's circuit is open.",
  ),
  refusedAddresses: counter(
    "sluice_node_addresses_refused_total",
    "Dials of nodes refused for the node's address (kubelet.allowedAddresses, kubelet.allowAPIServerEndpoints).",
  ),
  remembered: gauge("sluice_nodes_remembered", "Nodes with learned state in memory.", [], OF_WORKERS),
  dead: gauge(
    "sluice_nodes_dead",
    "Nodes whose circuit is open, including those being retried.",
    [],
    OF_WORKERS,
  ),
  avoidingPath: gauge(
    "sluice_nodes_avoiding_path",
    "Nodes whose WebSocket path recently failed and is skipped until its retry is due.",
    ["path"],
    OF_WORKERS,
  ),
};

/**
 * Metrics of node health and capabilities. No label contains a node's name: /debug/nodes has the
 * names.
 */
export class NodeMetrics {
  readonly #metrics: MetricsOf<typeof NODE_FAMILIES>;
  #counts: () => NodeCounts = () => ({ remembered: 0, dead: 0, avoided: {} });

  constructor(registry: Registry) {
    this.#metrics = register(registry, NODE_FAMILIES, {
      remembered: (metric) => metric.set(this.#counts().remembered),
      dead: (metric) => metric.set(this.#counts().dead),
      avoidingPath: (metric) => {
        metric.reset();
        for (const [path, number] of Object.entries(this.#counts().avoided)) metric.set({ path }, number);
      },
    });
  }

  /** Called at every scrape. */
  observe(counts: () => NodeCounts): void {
    this.#counts = counts;
  }

  fellBack(subresource: string, cause: string): void {
    this.#metrics.fallbacks.inc({ subresource, cause });
  }

  pathSucceeded(path: string): void {
    this.#metrics.paths.inc({ path, result: "success", cause: "" });
  }

  pathFailed(path: string, cause: string): void {
    this.#metrics.paths.inc({ path, result: "failure", cause });
  }

  dialFailed(): void {
    this.#metrics.dialFailures.inc();
  }

  dialRefused(): void {
    this.#metrics.refusedDials.inc();
  }

  addressRefused(): void {
    this.#metrics.refusedAddresses.inc();
  }
}
