import type { Registry } from "prom-client";
import type { AccessMetrics } from "./access-metrics.ts";
import { KubeletCounters } from "./kubelet-counters.ts";
import type { NodeMetrics } from "./node-metrics.ts";
import { StreamingMetrics } from "./streaming-metrics.ts";

/** The kubelet listener's metrics: its sessions under their own names, and a kubelet's counters. */
export class KubeletMetrics extends StreamingMetrics {
  readonly counters: KubeletCounters;
  readonly access: AccessMetrics;
  readonly nodes: NodeMetrics;

  constructor(registry: Registry, shared: { readonly access: AccessMetrics; readonly nodes: NodeMetrics }) {
    const counters = new KubeletCounters(registry);
    super(registry, "sluice_kubelet_streaming", counters);
    this.counters = counters;
    this.access = shared.access;
    this.nodes = shared.nodes;
  }
}
