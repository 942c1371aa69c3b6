import { CLAIMED_KUBERNETES_VERSION, SLUICE_VERSION } from "@sluice/client/internal/config/version";
import type { FaultPlace } from "@sluice/client/internal/observability/faults";
import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import { type Counter, collectDefaultMetrics, Registry } from "prom-client";
import { AccessMetrics } from "./access-metrics.ts";
import { ClusterMetrics } from "./cluster-metrics.ts";
import { IngressMetrics } from "./ingress-metrics.ts";
import { KubeletCounters } from "./kubelet-counters.ts";
import { KubernetesMetrics } from "./kubernetes-metrics.ts";
import type { MetricSnapshot } from "./merged-metrics.ts";
import { gauge, register } from "./metric-table.ts";
import { NodeMetrics } from "./node-metrics.ts";
import { type HistogramExemplars, openMetricsOf } from "./open-metrics.ts";
import {
  countFaults,
  OperationsMetrics,
  QuotaMetrics,
  ReloadMetrics,
  TraceMetrics,
} from "./operations-metrics.ts";
import { ProbeMetrics } from "./probe-metrics.ts";
import { RecordingMetrics } from "./recording-metrics.ts";
import { ResumptionMetrics } from "./resumption-metrics.ts";
import type { MeasuredPlan, MeasuredReport, MeasuredSession, SubresourceLabel } from "./streaming-labels.ts";
import { StreamingMetrics } from "./streaming-metrics.ts";

/** The kubelet listener's metrics: its sessions under their own names, and a kubelet's counters. */
class KubeletMetrics extends StreamingMetrics {
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

export const BUILD_FAMILIES = {
  info: gauge(
    "sluice_build_info",
    "Always 1; the labels are Sluice's release and the Kubernetes release that /version reports.",
    ["version", "kubernetes_version"],
    "first",
  ),
};

interface MetricsOptions {
  /** Adds this process's CPU, memory, event loop and garbage collection; true by default. */
  readonly withProcessMetrics?: boolean;
}

/**
 * The gateway's metrics in their own registry, so that two gateways in one process do not mix. A
 * session is reported as routed, then either refused, or started and ended.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #streaming: StreamingMetrics;
  #kubelet: KubeletMetrics | undefined;
  readonly #internalErrors: Counter<"where">;
  /** Authentication and audit. */
  readonly access = new AccessMetrics(this.#registry);
  readonly probes = new ProbeMetrics(this.#registry);
  readonly ingress = new IngressMetrics(this.#registry);
  /** The live API's lists and watches. */
  readonly cluster = new ClusterMetrics(this.#registry);
  /** Node health and capabilities. */
  readonly nodes = new NodeMetrics(this.#registry);
  readonly resumption = new ResumptionMetrics(this.#registry);
  readonly traces = new TraceMetrics(this.#registry);
  readonly operations = new OperationsMetrics(this.#registry);

  constructor({ withProcessMetrics = true }: MetricsOptions = {}) {
    if (withProcessMetrics) {
      collectDefaultMetrics({ register: this.#registry });
    }
    const release = { version: SLUICE_VERSION, kubernetes_version: CLAIMED_KUBERNETES_VERSION };
    register(this.#registry, BUILD_FAMILIES).info.set(release, 1);
    this.#internalErrors = countFaults(this.#registry);
    const kubernetes = new KubernetesMetrics(this.#registry);
    this.#streaming = new StreamingMetrics(this.#registry, "sluice_streaming", kubernetes);
  }

  /** An unexpected exception was caught at this place. */
  internalError(where: FaultPlace): void {
    this.#internalErrors.inc({ where });
  }

  /** Adds the metrics of the process that reads the configuration. Call it once. */
  addReloads(): ReloadMetrics {
    return new ReloadMetrics(this.#registry);
  }

  /** Adds the quota store's metrics, if this process uses the store. Call it once. */
  addQuotas(isUp: () => boolean): QuotaMetrics {
    return new QuotaMetrics(this.#registry, isUp);
  }

  /** Adds the recorder's metrics, if sessions are recorded. Call it once. */
  addRecording(running: () => { readonly size: number; readonly queuedBytes: number }): RecordingMetrics {
    return new RecordingMetrics(this.#registry, running);
  }

  /** Adds the kubelet listener's metrics, if there is such a listener. Call it once. */
  addKubelet(): KubeletMetrics {
    this.#kubelet = new KubeletMetrics(this.#registry, this);
    return this.#kubelet;
  }

  /**
   * Includes running sessions in the sessions gauge and the byte counts. Called at every scrape.
   */
  observeRunningSessions(list: () => Iterable<MeasuredSession>): void {
    this.#streaming.observeRunningSessions(list);
  }

  /** An allowed request got its path. */
  streamingRouted(subresource: SubresourceLabel, plan: MeasuredPlan, transport: string): void {
    this.#streaming.streamingRouted(subresource, plan, transport);
  }

  /**
   * Both upgrades succeeded. `handshakeSeconds` lasts from the request's head to the client's 101.
   */
  streamingStarted(
    subresource: SubresourceLabel,
    plan: MeasuredPlan,
    handshakeSeconds: number,
    trace?: RequestTrace,
  ): void {
    this.#streaming.streamingStarted(subresource, plan, handshakeSeconds, trace);
  }

  /** A session was refused; without a plan, before its destination was known. */
  streamingRefused(subresource: SubresourceLabel, plan: MeasuredPlan | undefined, code: number): void {
    this.#streaming.streamingRefused(subresource, plan, code);
  }

  /**
   * A WebSocket v5 or tunnel upgrade failed before it had a plan, or before another plan was tried.
   */
  upgradeFailed(subresource: SubresourceLabel): void {
    this.#streaming.upgradeFailed(subresource);
  }

  /** A started session ended and left the list of running ones. */
  streamingEnded(
    subresource: SubresourceLabel,
    plan: MeasuredPlan,
    report: MeasuredReport,
    durationSeconds: number,
    trace?: RequestTrace,
  ): void {
    this.#streaming.streamingEnded(subresource, plan, report, durationSeconds, trace);
  }

  /** All metrics in Prometheus' text format. */
  expose(): Promise<string> {
    return this.#registry.metrics();
  }

  /** The same in OpenMetrics, with an exemplar for each bucket that has a recorded trace. */
  async exposeOpenMetrics(): Promise<string> {
    return openMetricsOf(
      await this.expose(),
      this.#exemplars.flatMap((each) => each.list()),
    );
  }

  /** The same as data, for merging with other processes (merged-metrics.ts). */
  async snapshot(): Promise<readonly MetricSnapshot[]> {
    const exemplars = new Map(this.#exemplars.map((each) => [each.metric, each.list()]));
    const metrics = await this.#registry.getMetricsAsJSON();
    return metrics.map((metric) => {
      const own = exemplars.get(metric.name);
      return own === undefined ? metric : { ...metric, exemplars: own };
    });
  }

  get #exemplars(): readonly HistogramExemplars[] {
    return [this.#streaming, this.ingress, this.#kubelet].flatMap((each) => each?.exemplars ?? []);
  }
}
