import { type Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { CLAIMED_KUBERNETES_VERSION, SLUICE_VERSION } from "../config/version.ts";
import { AccessMetrics } from "./access-metrics.ts";
import { ClusterMetrics } from "./cluster-metrics.ts";
import type { HistogramExemplars } from "./exemplars.ts";
import { countFaults } from "./fault-counter.ts";
import type { FaultPlace } from "./faults.ts";
import { IngressMetrics } from "./ingress-metrics.ts";
import { KubeletMetrics } from "./kubelet-metrics.ts";
import { KubernetesMetrics } from "./kubernetes-metrics.ts";
import type { MetricSnapshot } from "./merged-metrics.ts";
import { NodeMetrics } from "./node-metrics.ts";
import { openMetricsOf } from "./open-metrics.ts";
import { OperationsMetrics, ReloadMetrics } from "./operations-metrics.ts";
import { ProbeMetrics } from "./probe-metrics.ts";
import { QuotaMetrics } from "./quota-metrics.ts";
import { ResumptionMetrics } from "./resumption-metrics.ts";
import type { MeasuredPlan, MeasuredReport, MeasuredSession, SubresourceLabel } from "./streaming-labels.ts";
import { StreamingMetrics } from "./streaming-metrics.ts";
import type { RequestTrace } from "./trace.ts";
import { TraceMetrics } from "./trace-metrics.ts";

export interface MetricsOptions {
  /** CPU, memory, event loop and garbage collection of this process; on unless said otherwise. */
  readonly withProcessMetrics?: boolean;
}

/** What the sessions of a listener report to. */
export type ListenerMetrics = Pick<
  Metrics,
  | "streamingRouted"
  | "streamingStarted"
  | "streamingRefused"
  | "upgradeFailed"
  | "streamingEnded"
  | "access"
  | "nodes"
>;

/**
 * The gateway's metrics, in a registry of their own: two gateways in one process do not mix, and nothing is global. A session is
 * reported as routed, then either refused, or started and ended.
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
  /** How well a live API is heard. */
  readonly cluster = new ClusterMetrics(this.#registry);
  /** What nodes were seen to do. */
  readonly nodes = new NodeMetrics(this.#registry);
  readonly resumption = new ResumptionMetrics(this.#registry);
  readonly traces = new TraceMetrics(this.#registry);
  readonly operations = new OperationsMetrics(this.#registry);

  constructor({ withProcessMetrics = true }: MetricsOptions = {}) {
    if (withProcessMetrics) {
      collectDefaultMetrics({ register: this.#registry });
    }
    new Gauge({
      name: "sluice_build_info",
      help: "Always 1; the labels are Sluice's release and the Kubernetes release that /version reports.",
      labelNames: ["version", "kubernetes_version"],
      aggregator: "first",
      registers: [this.#registry],
    }).set({ version: SLUICE_VERSION, kubernetes_version: CLAIMED_KUBERNETES_VERSION }, 1);
    this.#internalErrors = countFaults(this.#registry);
    const kubernetes = new KubernetesMetrics(this.#registry);
    this.#streaming = new StreamingMetrics(this.#registry, "sluice_streaming", kubernetes);
  }

  /** An exception that nothing expected was stopped there. */
  internalError(where: FaultPlace): void {
    this.#internalErrors.inc({ where });
  }

  /** Registers those of the process that reads the configuration. To be called once. */
  addReloads(): ReloadMetrics {
    return new ReloadMetrics(this.#registry);
  }

  /** Registers those of the quota store, where this process counts with it. To be called once. */
  addQuotas(isUp: () => boolean): QuotaMetrics {
    return new QuotaMetrics(this.#registry, isUp);
  }

  /** Registers those of the kubelet listener, which not every gateway has. To be called once. */
  addKubelet(): KubeletMetrics {
    this.#kubelet = new KubeletMetrics(this.#registry, this);
    return this.#kubelet;
  }

  /** Lets the gauge of sessions and the count of bytes show those that still run. Called at every scrape. */
  observeRunningSessions(list: () => Iterable<MeasuredSession>): void {
    this.#streaming.observeRunningSessions(list);
  }

  /** The path of an allowed request was chosen. */
  streamingRouted(subresource: SubresourceLabel, plan: MeasuredPlan, transport: string): void {
    this.#streaming.streamingRouted(subresource, plan, transport);
  }

  /** Both upgrades are done. `handshakeSeconds`: from the request's head to the client's 101. */
  streamingStarted(
    subresource: SubresourceLabel,
    plan: MeasuredPlan,
    handshakeSeconds: number,
    trace?: RequestTrace,
  ): void {
    this.#streaming.streamingStarted(subresource, plan, handshakeSeconds, trace);
  }

  /** No session came to be. Without a plan: refused before it was known where the request would go. */
  streamingRefused(subresource: SubresourceLabel, plan: MeasuredPlan | undefined, code: number): void {
    this.#streaming.streamingRefused(subresource, plan, code);
  }

  /** A WebSocket v5 or tunnel upgrade was attempted and failed, before it had a plan or before another plan was taken. */
  upgradeFailed(subresource: SubresourceLabel): void {
    this.#streaming.upgradeFailed(subresource);
  }

  /** A started session is over and no longer among the running ones. */
  streamingEnded(
    subresource: SubresourceLabel,
    plan: MeasuredPlan,
    report: MeasuredReport,
    durationSeconds: number,
    trace?: RequestTrace,
  ): void {
    this.#streaming.streamingEnded(subresource, plan, report, durationSeconds, trace);
  }

  /** Everything in Prometheus' text format. */
  expose(): Promise<string> {
    return this.#registry.metrics();
  }

  /** The same as OpenMetrics, with an exemplar for each bucket that a recorded trace fell into. */
  async exposeOpenMetrics(): Promise<string> {
    return openMetricsOf(
      await this.expose(),
      this.#exemplars.flatMap((each) => each.list()),
    );
  }

  /** The same as data, to be merged with that of other processes (merged-metrics.ts). */
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
