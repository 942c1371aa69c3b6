import type { Counter, Registry } from "prom-client";
import { counter, gauge, type MetricsOf, register } from "./metric-table.ts";
import { codeLabel, type MeasuredPlan, SUBRESOURCES, type SubresourceLabel } from "./streaming-labels.ts";
import type { KubernetesCounters } from "./streaming-metrics.ts";

const ATTEMPTS = { type: ["success", "failure"] } as const;

const KUBERNETES_FAMILIES = {
  translated: counter(
    "apiserver_stream_translator_requests_total",
    "Total number of requests that were handled by the StreamTranslatorProxy, which processes streaming RemoteCommand/V5",
    ["code"],
  ),
  tunneled: counter(
    "apiserver_stream_tunnel_requests_total",
    "Total number of requests that were handled by the StreamTunnelProxy, which processes streaming PortForward/V2",
    ["code"],
  ),
  routed: counter(
    "apiserver_websocket_streaming_requests_total",
    "Total number of WebSocket streaming requests (exec/attach/portforward) routed by the API server, labeled by " +
      "subresource and proxy_type. proxy_type is proxied_to_kubelet when the kubelet handles the request directly; " +
      "otherwise translated_at_apiserver.",
    { subresource: SUBRESOURCES, proxy_type: ["proxied_to_kubelet", "translated_at_apiserver"] },
  ),
  remoteCommandV5: counter(
    "num_ws_remote_command_v5_total",
    "Total number of WebSocket/V5 RemoteCommand connection upgrade attempts, by result (success or failure).",
    ATTEMPTS,
  ),
  portForwardV2: counter(
    "num_ws_port_forward_v2_total",
    "Total number of WebSocket/V2 PortForward connection upgrade attempts, by result (success or failure).",
    ATTEMPTS,
  ),
  active: gauge(
    "apiserver_streaming_active_connections",
    "Gauge of active streaming connections, to distinguish between connections proxied directly to the Kubelet vs. " +
      "those that require protocol translation or tunneling at the API server.",
    { subresource: SUBRESOURCES, proxy_type: ["proxied", "translated_or_tunneled"] },
  ),
};

/**
 * Kubernetes' shipped metrics (names, labels and help of 1.37) and those announced in KEP-4006, so
 * that dashboards for either work. Counts as kube-apiserver does, if kube-apiserver counts at all.
 */
export class KubernetesMetrics implements KubernetesCounters {
  readonly #metrics: MetricsOf<typeof KUBERNETES_FAMILIES>;

  constructor(registry: Registry) {
    this.#metrics = register(registry, KUBERNETES_FAMILIES);
    this.#metrics.translated.inc({ code: "200" }, 0);
    this.#metrics.tunneled.inc({ code: "101" }, 0);
  }

  routed(subresource: SubresourceLabel, plan: MeasuredPlan, isWebSocket: boolean): void {
    // With its gate off, kube-apiserver does not make the counted decision.
    if (isWebSocket && plan.countedAs !== "gated") {
      const proxy_type = plan.kind === "pass-through" ? "proxied_to_kubelet" : "translated_at_apiserver";
      this.#metrics.routed.inc({ subresource, proxy_type });
    }
  }

  started(subresource: SubresourceLabel, plan: MeasuredPlan): void {
    this.#upgradeAttempted(subresource, plan, "success");
    this.#metrics.active.inc({ subresource, proxy_type: kepProxyType(plan) });
    if (plan.kind === "tunnel") {
      // kube-apiserver counts the tunnel at the node's answer, the translator at the session's end.
      this.#metrics.tunneled.inc({ code: "101" });
    }
  }

  refused(subresource: SubresourceLabel, plan: MeasuredPlan, code: number): void {
    this.#upgradeAttempted(subresource, plan, "failure");
    if (plan.kind === "translate") {
      this.#metrics.translated.inc({ code: codeLabel(code) });
    } else if (plan.kind === "tunnel") {
      this.#metrics.tunneled.inc({ code: codeLabel(code) });
    }
  }

  upgradeFailed(subresource: SubresourceLabel): void {
    this.#attemptsOf(subresource).inc({ type: "failure" });
  }

  ended(subresource: SubresourceLabel, plan: MeasuredPlan, code: number): void {
    this.#metrics.active.dec({ subresource, proxy_type: kepProxyType(plan) });
    if (plan.kind === "translate") {
      this.#metrics.translated.inc({ code: codeLabel(code) });
    }
  }

  #upgradeAttempted(subresource: SubresourceLabel, plan: MeasuredPlan, type: "success" | "failure"): void {
    if (plan.countedAs !== "other") this.#attemptsOf(subresource).inc({ type });
  }

  #attemptsOf(subresource: SubresourceLabel): Counter<"type"> {
    return subresource === "portforward" ? this.#metrics.portForwardV2 : this.#metrics.remoteCommandV5;
  }
}

/** The KEP's gauge has other values than the shipped counter. */
function kepProxyType(plan: MeasuredPlan): "proxied" | "translated_or_tunneled" {
  return plan.kind === "pass-through" ? "proxied" : "translated_or_tunneled";
}
