import { ACCESS_FAMILIES } from "../../src/observability/access-metrics.ts";
import { CLUSTER_FAMILIES } from "../../src/observability/cluster-metrics.ts";
import { INGRESS_FAMILIES, ROUTE_FAMILIES } from "../../src/observability/ingress-metrics.ts";
import { KUBELET_FAMILIES } from "../../src/observability/kubelet-counters.ts";
import { KUBERNETES_FAMILIES } from "../../src/observability/kubernetes-metrics.ts";
import { WORKER_FAMILIES } from "../../src/observability/merged-metrics.ts";
import type { Family } from "../../src/observability/metric-table.ts";
import { BUILD_FAMILIES } from "../../src/observability/metrics.ts";
import { NODE_FAMILIES } from "../../src/observability/node-metrics.ts";
import {
  FAULT_FAMILIES,
  OPERATIONS_FAMILIES,
  QUOTA_FAMILIES,
  RELOAD_FAMILIES,
  TRACE_FAMILIES,
} from "../../src/observability/operations-metrics.ts";
import { PROBE_FAMILIES } from "../../src/observability/probe-metrics.ts";
import { RECORDING_FAMILIES } from "../../src/observability/recording-metrics.ts";
import { RESUMPTION_FAMILIES } from "../../src/observability/resumption-metrics.ts";
import { streamingFamilies } from "../../src/observability/streaming-metrics.ts";

/** Every metric family that a gateway process can register, by name. */
export const METRIC_FAMILIES: readonly Family[] = [
  ACCESS_FAMILIES,
  BUILD_FAMILIES,
  CLUSTER_FAMILIES,
  FAULT_FAMILIES,
  INGRESS_FAMILIES,
  KUBELET_FAMILIES,
  KUBERNETES_FAMILIES,
  NODE_FAMILIES,
  OPERATIONS_FAMILIES,
  PROBE_FAMILIES,
  QUOTA_FAMILIES,
  RECORDING_FAMILIES,
  RELOAD_FAMILIES,
  RESUMPTION_FAMILIES,
  ROUTE_FAMILIES,
  streamingFamilies("sluice_streaming"),
  streamingFamilies("sluice_kubelet_streaming"),
  TRACE_FAMILIES,
  WORKER_FAMILIES,
]
  .flatMap((table) => Object.values<Family>(table))
  .toSorted((a, b) => (a.name < b.name ? -1 : 1));

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
