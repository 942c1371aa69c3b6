import { Counter, type Registry } from "prom-client";
import { type MeasuredPlan, SUBRESOURCES, type SubresourceLabel } from "./streaming-labels.ts";
import type { KubernetesCounters } from "./streaming-metrics.ts";

/**
 * The kubelet's counter as shipped in 1.36, and the one announced in KEP-4006, which has another
 * name and a result.
 */
export class KubeletCounters implements KubernetesCounters {
  readonly #received: Counter<"subresource">;
  readonly #results: Counter<"subresource" | "result">;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#received = new Counter({
      name: "kubelet_websocket_streaming_requests_total",
      help: "Total number of WebSocket streaming requests (exec/attach/portforward) received by the kubelet.",
      labelNames: ["subresource"],
      registers,
    });
    this.#results = new Counter({
      name: "kubelet_streaming_websocket_requests_total",
      help: "Total number of WebSocket streaming requests (exec/attach/portforward) that the kubelet handled itself, by result (success or failure).",
      labelNames: ["subresource", "result"],
      registers,
    });
    // rate() misses the first event of a series that starts with it.
    for (const subresource of SUBRESOURCES) {
      this.#received.inc({ subresource }, 0);
      for (const result of ["success", "failure"]) this.#results.inc({ subresource, result }, 0);
    }
  }

  /** The runtime returned the session's URL; a kubelet counts here, before the upgrade. */
  urlObtained(subresource: SubresourceLabel, plan: MeasuredPlan): void {
    if (isHandledHere(plan)) this.#received.inc({ subresource });
  }

  routed(): void {}

  started(subresource: SubresourceLabel, plan: MeasuredPlan): void {
    if (isHandledHere(plan)) this.#results.inc({ subresource, result: "success" });
  }

  refused(subresource: SubresourceLabel, plan: MeasuredPlan): void {
    if (isHandledHere(plan)) this.#results.inc({ subresource, result: "failure" });
  }

  /** No effect: a kubelet would not have handled the request yet. */
  upgradeFailed(): void {}

  ended(): void {}
}

/** With its gate off, a kubelet passes these requests on without counting. */
function isHandledHere(plan: MeasuredPlan): boolean {
  return plan.countedAs === "new-protocol";
}
