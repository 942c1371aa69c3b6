import { Counter, type Registry } from "prom-client";
import {
  isNewWebSocket,
  type MeasuredPlan,
  SUBRESOURCES,
  type SubresourceLabel,
} from "./streaming-labels.ts";
import type { KubernetesCounters } from "./streaming-metrics.ts";

/** The kubelet's counter as it shipped (1.36), and the one that KEP-4006 announced, under its other name and with a result. */
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
    // A series that appears with its first event hides that event from rate().
    for (const subresource of SUBRESOURCES) {
      this.#received.inc({ subresource }, 0);
      for (const result of ["success", "failure"]) this.#results.inc({ subresource, result }, 0);
    }
  }

  /** The runtime has given the URL of the session; the kubelet counts here, before the upgrade. */
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

  /** Refused before a kubelet would handle it. */
  upgradeFailed(): void {}

  ended(): void {}
}

/** With its gate off, a kubelet passes these requests on without a look. */
function isHandledHere(plan: MeasuredPlan): boolean {
  return isNewWebSocket(plan) && plan.reason !== "gate-off";
}
