import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import type { Counter, Histogram, Registry } from "prom-client";
import { counter, gauge, histogram, type MetricsOf, register } from "./metric-table.ts";
import { HistogramExemplars } from "./open-metrics.ts";
import {
  codeLabel,
  type MeasuredPlan,
  type MeasuredReport,
  type MeasuredSession,
  PLAN_KINDS,
  SESSION_ENDS,
  SUBRESOURCES,
  type SubresourceLabel,
} from "./streaming-labels.ts";

const HANDSHAKE_BUCKETS_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];
const SESSION_BUCKETS_SECONDS = [0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400];

/** `prefix` begins the names, such as `sluice_streaming`. */
const streamingFamilies = (prefix: string) => ({
  requests: counter(
    `${prefix}_requests_total`,
    "Streaming requests by the code that the client was answered with; 101 is a session that started. plan is none for requests refused before one was made.",
    ["subresource", "plan", "code"],
  ),
  bytes: counter(
    `${prefix}_bytes_total`,
    "Bytes carried, downstream towards clients and upstream towards nodes, running sessions included. Payload without framing where framing is translated or unwrapped, all bytes where they pass through.",
    ["subresource", "direction"],
  ),
  active: gauge(`${prefix}_active_sessions`, "Running sessions, on every path.", ["subresource"]),
  handshakeSeconds: histogram(
    `${prefix}_handshake_duration_seconds`,
    "Time from a streaming request's head to the client's 101: authorization, locating and dialling the node included.",
    ["subresource", "plan"],
    HANDSHAKE_BUCKETS_SECONDS,
  ),
  sessionSeconds: histogram(
    `${prefix}_session_duration_seconds`,
    "Time from a streaming request's head to the end of its session.",
    ["subresource", "plan"],
    SESSION_BUCKETS_SECONDS,
  ),
  ended: counter(
    `${prefix}_sessions_ended_total`,
    "Sessions that are over, by the side that ended them and why. completed: the node said how it ended and the client got all of it.",
    ["subresource", "plan", "ended_by", "cause"],
  ),
});

type StreamingFamilies = ReturnType<typeof streamingFamilies>;

/** The counters of one subresource and plan, looked up once so that sessions hash no labels. */
interface StreamingChildren {
  readonly started: Counter.Internal;
  readonly handshakeSeconds: Histogram.Internal<"subresource" | "plan">;
  readonly sessionSeconds: Histogram.Internal<"subresource" | "plan">;
  /** Keyed by `endKey`. */
  readonly ended: ReadonlyMap<string, Counter.Internal>;
}

interface PayloadBytes {
  downstream: number;
  upstream: number;
}

/** The histograms with exemplars. */
interface StreamingExemplars {
  readonly handshakes: HistogramExemplars;
  readonly sessions: HistogramExemplars;
}

/** Kubernetes' counters for the sessions of one leg. */
export interface KubernetesCounters {
  routed(subresource: SubresourceLabel, plan: MeasuredPlan, isWebSocket: boolean): void;
  started(subresource: SubresourceLabel, plan: MeasuredPlan): void;
  refused(subresource: SubresourceLabel, plan: MeasuredPlan, code: number): void;
  /** An upgrade of the new protocols failed without a plan, or before its last plan. */
  upgradeFailed(subresource: SubresourceLabel): void;
  ended(subresource: SubresourceLabel, plan: MeasuredPlan, code: number): void;
}

/** The sessions of one listener. A session is reported as routed, then either refused, or started and ended. */
export class StreamingMetrics {
  readonly #kubernetes: KubernetesCounters;
  readonly #children: ReadonlyMap<string, StreamingChildren>;
  readonly #exemplars: StreamingExemplars;
  readonly #requests: Counter<"subresource" | "plan" | "code">;
  readonly #endedBytes = new Map<SubresourceLabel, PayloadBytes>();
  #runningSessions: () => Iterable<MeasuredSession> = () => [];

  constructor(registry: Registry, prefix: string, kubernetes: KubernetesCounters) {
    this.#kubernetes = kubernetes;
    const families = streamingFamilies(prefix);
    this.#exemplars = {
      handshakes: new HistogramExemplars(families.handshakeSeconds.name, HANDSHAKE_BUCKETS_SECONDS),
      sessions: new HistogramExemplars(families.sessionSeconds.name, SESSION_BUCKETS_SECONDS),
    };
    const metrics = register(registry, families, {
      bytes: (metric) => {
        metric.reset();
        for (const [subresource, { downstream, upstream }] of this.#totalBytes()) {
          metric.inc({ subresource, direction: "downstream" }, downstream);
          metric.inc({ subresource, direction: "upstream" }, upstream);
        }
      },
      active: (metric) => {
        for (const subresource of SUBRESOURCES) metric.set({ subresource }, 0);
        for (const { subresource } of this.#runningSessions()) metric.inc({ subresource });
      },
    });
    this.#requests = metrics.requests;
    this.#children = createStreamingChildren(metrics);
    for (const subresource of SUBRESOURCES) {
      this.#endedBytes.set(subresource, { downstream: 0, upstream: 0 });
    }
  }

  /**
   * Includes running sessions in the sessions gauge and the byte counts. Called at every scrape.
   */
  observeRunningSessions(list: () => Iterable<MeasuredSession>): void {
    this.#runningSessions = list;
  }

  /** An allowed request got its path. */
  streamingRouted(subresource: SubresourceLabel, plan: MeasuredPlan, transport: string): void {
    this.#kubernetes.routed(subresource, plan, transport === "websocket");
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
    if (isKnownToKubernetes(plan)) this.#kubernetes.started(subresource, plan);
    const children = this.#of(subresource, plan.kind);
    children?.started.inc();
    children?.handshakeSeconds.observe(handshakeSeconds);
    this.#exemplars.handshakes.observe({ subresource, plan: plan.kind }, handshakeSeconds, trace);
  }

  /** A session was refused; without a plan, before its destination was known. */
  streamingRefused(subresource: SubresourceLabel, plan: MeasuredPlan | undefined, code: number): void {
    if (plan !== undefined && isKnownToKubernetes(plan)) this.#kubernetes.refused(subresource, plan, code);
    this.#requests.inc({ subresource, plan: plan?.kind ?? "none", code: codeLabel(code) });
  }

  /** A WebSocket v5 or tunnel upgrade failed, and no other method counts it. */
  upgradeFailed(subresource: SubresourceLabel): void {
    this.#kubernetes.upgradeFailed(subresource);
  }

  /** A started session ended and left the list of running ones. */
  streamingEnded(
    subresource: SubresourceLabel,
    plan: MeasuredPlan,
    report: MeasuredReport,
    durationSeconds: number,
    trace?: RequestTrace,
  ): void {
    if (isKnownToKubernetes(plan)) this.#kubernetes.ended(subresource, plan, report.code);
    const children = this.#of(subresource, plan.kind);
    children?.sessionSeconds.observe(durationSeconds);
    this.#exemplars.sessions.observe({ subresource, plan: plan.kind }, durationSeconds, trace);
    children?.ended.get(endKey(report))?.inc();
    const bytes = this.#endedBytes.get(subresource);
    if (bytes !== undefined) {
      bytes.downstream += report.downstreamBytes;
      bytes.upstream += report.upstreamBytes;
    }
  }

  get exemplars(): readonly HistogramExemplars[] {
    return Object.values(this.#exemplars);
  }

  #of(subresource: SubresourceLabel, kind: MeasuredPlan["kind"]): StreamingChildren | undefined {
    return this.#children.get(`${subresource}/${kind}`);
  }

  #totalBytes(): ReadonlyMap<SubresourceLabel, PayloadBytes> {
    const totals = new Map(
      Array.from(this.#endedBytes, ([subresource, bytes]) => [subresource, { ...bytes }]),
    );
    for (const session of this.#runningSessions()) {
      const bytes = totals.get(session.subresource);
      if (bytes !== undefined) {
        bytes.downstream += session.downstreamBytes;
        bytes.upstream += session.upstreamBytes;
      }
    }
    return totals;
  }
}

function createStreamingChildren(
  metrics: MetricsOf<StreamingFamilies>,
): ReadonlyMap<string, StreamingChildren> {
  const { requests, handshakeSeconds, sessionSeconds, ended } = metrics;
  const children = new Map<string, StreamingChildren>();
  for (const subresource of SUBRESOURCES) {
    for (const plan of PLAN_KINDS) {
      children.set(`${subresource}/${plan}`, {
        started: requests.labels({ subresource, plan, code: "101" }),
        handshakeSeconds: handshakeSeconds.labels({ subresource, plan }),
        sessionSeconds: sessionSeconds.labels({ subresource, plan }),
        ended: new Map(
          SESSION_ENDS.map((end) => {
            const child = ended.labels({ subresource, plan, ended_by: end.endedBy, cause: end.cause });
            // Starts at 0, so that rates and alerts see the first end of each kind.
            if (isCarried(subresource, plan)) child.inc(0);
            return [endKey(end), child];
          }),
        ),
      });
    }
  }
  return children;
}

/**
 * kube-apiserver counts exec, attach and portforward, but not sessions through its proxy
 * subresources.
 */
function isKnownToKubernetes({ kind }: MeasuredPlan): boolean {
  return kind !== "proxied";
}

/** Commands are translated and port-forwards are tunnelled; the other paths carry both. */
function isCarried(subresource: SubresourceLabel, plan: MeasuredPlan["kind"]): boolean {
  return plan !== (subresource === "portforward" ? "translate" : "tunnel");
}

function endKey({ endedBy, cause }: Pick<MeasuredReport, "endedBy" | "cause">): string {
  return `${endedBy}/${cause}`;
}
