import { Registry } from "prom-client";
import { AccessMetrics } from "../../src/observability/access-metrics.ts";
import { ClusterMetrics } from "../../src/observability/cluster-metrics.ts";
import { IngressMetrics } from "../../src/observability/ingress-metrics.ts";
import { KubeletCounters } from "../../src/observability/kubelet-counters.ts";
import { KubernetesMetrics } from "../../src/observability/kubernetes-metrics.ts";
import { WORKER_FAMILIES } from "../../src/observability/merged-metrics.ts";
import { type Family, register } from "../../src/observability/metric-table.ts";
import { BUILD_FAMILIES } from "../../src/observability/metrics.ts";
import { NodeMetrics } from "../../src/observability/node-metrics.ts";
import {
  countFaults,
  OperationsMetrics,
  QuotaMetrics,
  ReloadMetrics,
  TraceMetrics,
} from "../../src/observability/operations-metrics.ts";
import { ProbeMetrics } from "../../src/observability/probe-metrics.ts";
import { RecordingMetrics } from "../../src/observability/recording-metrics.ts";
import { ResumptionMetrics } from "../../src/observability/resumption-metrics.ts";
import { StreamingMetrics } from "../../src/observability/streaming-metrics.ts";

/** Every metric family that a gateway process can register, by name. */
export const METRIC_FAMILIES: readonly Family[] = families();

function families(): Family[] {
  const registry = new Registry();
  new AccessMetrics(registry);
  new ClusterMetrics(registry);
  new IngressMetrics(registry);
  new NodeMetrics(registry);
  new OperationsMetrics(registry);
  new ProbeMetrics(registry);
  new QuotaMetrics(registry, () => true);
  new RecordingMetrics(registry, () => ({ size: 0, queuedBytes: 0 }));
  new ReloadMetrics(registry);
  new ResumptionMetrics(registry);
  new StreamingMetrics(registry, "sluice_streaming", new KubernetesMetrics(registry));
  new StreamingMetrics(registry, "sluice_kubelet_streaming", new KubeletCounters(registry));
  new TraceMetrics(registry);
  countFaults(registry);
  register(registry, BUILD_FAMILIES);
  register(registry, WORKER_FAMILIES);
  // Its types leave out the label names.
  return (registry.getMetricsAsArray() as unknown as Family[]).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** The prefix of the families whose kubelet-listener counterparts have the same meaning. */
const PREFIX = "sluice_streaming_";
const KUBELET_PREFIX = "sluice_kubelet_streaming_";

/** Generates the part of docs/metrics.md that lists the families. */
export function metricsReference(): string {
  const types = [...new Set(METRIC_FAMILIES.map(({ type }) => type))];
  return types.map(tableOf).join("\n");
}

function isSaid({ name, help }: Family): boolean {
  const like = name.replace(KUBELET_PREFIX, PREFIX);
  return like !== name && METRIC_FAMILIES.some((other) => other.name === like && other.help === help);
}

function tableOf(type: Family["type"]): string {
  const families = METRIC_FAMILIES.filter((family) => family.type === type && !isSaid(family));
  const rows = families.map(({ name, help, labelNames }) => {
    const labels =
      labelNames.length === 0 ? "" : `<br>{${labelNames.map((label) => `\`${label}\``).join(",")}}`;
    return `| \`${name}\`${labels} | ${help.replaceAll("|", "\\|")} |\n`;
  });
  return `| ${type}, labels | meaning |\n|---|---|\n${rows.join("")}`;
}
