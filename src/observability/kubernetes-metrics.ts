import { Counter, Gauge, type Registry } from "prom-client";
import { codeLabel, type MeasuredPlan, SUBRESOURCES, type SubresourceLabel } from "./streaming-labels.ts";
import type { KubernetesCounters } from "./streaming-metrics.ts";

/**
 * Kubernetes' shipped metrics (names, labels and help of 1.37) and those announced in KEP-4006, so
 * that dashboards for either work. Counts as kube-apiserver does, if kube-apiserver counts at all.
 */
export class KubernetesMetrics implements KubernetesCounters {
  readonly #translated: Counter<"code">;
  readonly #tunneled: Counter<"code">;
  readonly #routed: Counter<"subresource" | "proxy_type">;
  readonly #remoteCommandV5: Counter<"type">;
  readonly #portForwardV2: Counter<"type">;
  readonly #active: Gauge<"subresource" | "proxy_type">;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#translated = new Counter({
      name: "apiserver_stream_translator_requests_total",
      help: "Total number of requests that were handled by the StreamTranslatorProxy, which processes streaming RemoteCommand/V5",
      labelNames: ["code"],
      registers,
    });
    this.#tunneled = new Counter({
      name: "apiserver_stream_tunnel_requests_total",
      help: "Total number of requests that were handled by the StreamTunnelProxy, which processes streaming PortForward/V2",
      labelNames: ["code"],
      registers,
    });
    this.#routed = new Counter({
      name: "apiserver_websocket_streaming_requests_total",
      help:
        "Total number of WebSocket streaming requests (exec/attach/portforward) routed by the API server, labeled by " +
        "subresource and proxy_type. proxy_type is proxied_to_kubelet when the kubelet handles the request directly; " +
        "otherwise translated_at_apiserver.",
      labelNames: ["subresource", "proxy_type"],
      registers,
    });
    this.#remoteCommandV5 = new Counter({
      name: "num_ws_remote_command_v5_total",
      help: "Total number of WebSocket/V5 RemoteCommand connection upgrade attempts, by result (success or failure).",
      labelNames: ["type"],
      registers,
    });
    this.#portForwardV2 = new Counter({
      name: "num_ws_port_forward_v2_total",
      help: "Total number of WebSocket/V2 PortForward connection upgrade attempts, by result (success or failure).",
      labelNames: ["type"],
      registers,
    });
    this.#active = new Gauge({
      name: "apiserver_streaming_active_connections",
      help:
        "Gauge of active streaming connections, to distinguish between connections proxied directly to the Kubelet vs. " +
        "those that require protocol translation or tunneling at the API server.",
      labelNames: ["subresource", "proxy_type"],
      registers,
    });
    this.#startAtZero();
  }

  routed(subresource: SubresourceLabel, plan: MeasuredPlan, isWebSocket: boolean): void {
    // With its gate off, kube-apiserver does not make the counted decision.
    if (isWebSocket && plan.countedAs !== "gated") {
      const proxy_type = plan.kind === "pass-through" ? "proxied_to_kubelet" : "translated_at_apiserver";
      this.#routed.inc({ subresource, proxy_type });
    }
  }

  started(subresource: SubresourceLabel, plan: MeasuredPlan): void {
    this.#upgradeAttempted(subresource, plan, "success");
    this.#active.inc({ subresource, proxy_type: kepProxyType(plan) });
    if (plan.kind === "tunnel") {
      // kube-apiserver counts the tunnel at the node's answer, the translator at the session's end.
      this.#tunneled.inc({ code: "101" });
    }
  }

  refused(subresource: SubresourceLabel, plan: MeasuredPlan, code: number): void {
    this.#upgradeAttempted(subresource, plan, "failure");
    if (plan.kind === "translate") {
      this.#translated.inc({ code: codeLabel(code) });
    } else if (plan.kind === "tunnel") {
      this.#tunneled.inc({ code: codeLabel(code) });
    }
  }

  upgradeFailed(subresource: SubresourceLabel): void {
    this.#attemptsOf(subresource).inc({ type: "failure" });
  }

  ended(subresource: SubresourceLabel, plan: MeasuredPlan, code: number): void {
    this.#active.dec({ subresource, proxy_type: kepProxyType(plan) });
    if (plan.kind === "translate") {
      this.#translated.inc({ code: codeLabel(code) });
    }
  }

  #upgradeAttempted(subresource: SubresourceLabel, plan: MeasuredPlan, type: "success" | "failure"): void {
    if (plan.countedAs !== "other") this.#attemptsOf(subresource).inc({ type });
  }

  #attemptsOf(subresource: SubresourceLabel): Counter<"type"> {
    return subresource === "portforward" ? this.#portForwardV2 : this.#remoteCommandV5;
  }

  /** rate() misses the first event of a series that starts with it. */
  #startAtZero(): void {
    for (const type of ["success", "failure"]) {
      this.#remoteCommandV5.inc({ type }, 0);
      this.#portForwardV2.inc({ type }, 0);
    }
    for (const subresource of SUBRESOURCES) {
      for (const proxy_type of ["proxied_to_kubelet", "translated_at_apiserver"]) {
        this.#routed.inc({ subresource, proxy_type }, 0);
      }
      for (const proxy_type of ["proxied", "translated_or_tunneled"]) {
        this.#active.set({ subresource, proxy_type }, 0);
      }
    }
    this.#translated.inc({ code: "200" }, 0);
    this.#tunneled.inc({ code: "101" }, 0);
  }
}

/** The KEP's gauge has other values than the shipped counter. */
function kepProxyType(plan: MeasuredPlan): "proxied" | "translated_or_tunneled" {
  return plan.kind === "pass-through" ? "proxied" : "translated_or_tunneled";
}
