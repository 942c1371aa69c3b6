import type { Registry } from "prom-client";
import { counter, type MetricsOf, register } from "./metric-table.ts";
import { type MeasuredPlan, SUBRESOURCES, type SubresourceLabel } from "./streaming-labels.ts";
import type { KubernetesCounters } from "./streaming-metrics.ts";

const KUBELET_FAMILIES = {
  received: counter(
    "kubelet_websocket_streaming_requests_total",
    "Total number of WebSocket streaming requests (exec/attach/portforward) received by the kubelet.",
    { subresource: SUBRESOURCES },
  ),
  results: counter(
    "kubelet_streaming_websocket_requests_total",
    "Total number of WebSocket streaming requests (exec/attach/portforward) that the kubelet handled itself, by result (success or failure).",
    { subresource: SUBRESOURCES, result: ["success", "failure"] },
  ),
};

/**
 * The kubelet's counter as shipped in 1.36, and the one announced in KEP-4006, which has another
 * name and a result.
 */
export class KubeletCounters implements KubernetesCounters {
  readonly #metrics: MetricsOf<typeof KUBELET_FAMILIES>;

  constructor(registry: Registry) {
    this.#metrics = register(registry, KUBELET_FAMILIES);
  }

  /** The runtime returned the session's URL; a kubelet counts here, before the upgrade. */
  urlObtained(subresource: SubresourceLabel, plan: MeasuredPlan): void {
    if (isHandledHere(plan)) this.#metrics.received.inc({ subresource });
  }

  routed(): void {}

  started(subresource: SubresourceLabel, plan: MeasuredPlan): void {
    if (isHandledHere(plan)) this.#metrics.results.inc({ subresource, result: "success" });
  }

  refused(subresource: SubresourceLabel, plan: MeasuredPlan): void {
    if (isHandledHere(plan)) this.#metrics.results.inc({ subresource, result: "failure" });
  }

  /** No effect: a kubelet would not have handled the request yet. */
  upgradeFailed(): void {}

  ended(): void {}
}

/** With its gate off, a kubelet passes these requests on without counting. */
function isHandledHere(plan: MeasuredPlan): boolean {
  return plan.countedAs === "new-protocol";
}
