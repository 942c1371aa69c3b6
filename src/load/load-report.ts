import type { LatencyCounts, SparseCounts } from "./latency-counts.ts";
import type { LoadPlan } from "./load-plan.ts";
import { type CountedError, type Interval, LATENCIES, type LatencyName, newLatencies } from "./recorder.ts";

/** A process that used more of its core than this, or was later than that, in a second, was too busy to measure well. */
const BUSY_CPU_SHARE = 0.85;
const BUSY_LAG_MS = 50;

export interface LatencySummary {
  readonly count: number;
  readonly p50Us: number;
  readonly p90Us: number;
  readonly p99Us: number;
  readonly p999Us: number;
  readonly maxUs: number;
}

export interface ReportedSecond {
  readonly second: number;
  readonly active: number;
  readonly started: number;
  readonly failed: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly latencies: Readonly<Record<LatencyName, SparseCounts>>;
}

/** What `--json` writes. */
export interface LoadReport {
  /** The plan without its path: it may name pods and commands. */
  readonly plan: Omit<LoadPlan, "path">;
  readonly startedAt: string;
  readonly seconds: number;
  readonly wasInterrupted: boolean;
  readonly sessions: { readonly started: number; readonly finished: number; readonly failed: number };
  readonly bytes: { readonly sent: number; readonly received: number };
  readonly messages: { readonly sent: number; readonly received: number };
  readonly latencies: Readonly<Record<LatencyName, LatencySummary>>;
  readonly errors: readonly CountedError[];
  readonly generator: {
    readonly processes: number;
    /** The largest share of one core that one process used in a second, and how late its event loop was. */
    readonly maxCpuShare: number;
    readonly maxLagMs: number;
    /** Seconds in which a process was too busy to measure well. */
    readonly busySeconds: number;
    readonly wasBottleneck: boolean;
  };
  readonly perSecond: readonly ReportedSecond[];
}

/** Adds up what the processes report. */
export class LoadCollector {
  readonly #plan: LoadPlan;
  readonly #processes: number;
  readonly #startAtMs: number;
  readonly #latencies = newLatencies();
  readonly #errors = new Map<string, CountedError>();
  readonly #seconds: { total: SecondTotal; latencies: Record<LatencyName, LatencyCounts> }[] = [];
  readonly #busy = new Set<number>();
  #untilMs = 0;
  #maxCpuShare = 0;
  #maxLagMs = 0;
  #deaths = 0;

  constructor(plan: LoadPlan, processes: number, startAtMs: number) {
    this.#plan = plan;
    this.#processes = processes;
    this.#startAtMs = startAtMs;
  }

  add(interval: Interval): void {
    while (this.#seconds.length <= interval.second) {
      this.#seconds.push({ total: { ...NO_TOTAL }, latencies: newLatencies() });
    }
    const second = this.#seconds[interval.second];
    if (second === undefined) return;
    for (const key of TOTALS) second.total[key] += interval[key];
    for (const name of LATENCIES) {
      const { counts, maxUs } = interval.latencies[name];
      second.latencies[name].add(counts, maxUs);
      this.#latencies[name].add(counts, maxUs);
    }
    for (const error of interval.errors) {
      const key = `${error.leg} ${error.kind}`;
      const count = (this.#errors.get(key)?.count ?? 0) + error.count;
      this.#errors.set(key, { ...error, count });
    }
    this.#untilMs = Math.max(this.#untilMs, interval.untilMs);
    this.#maxCpuShare = Math.max(this.#maxCpuShare, interval.cpuShare);
    this.#maxLagMs = Math.max(this.#maxLagMs, interval.lagMs);
    if (interval.cpuShare > BUSY_CPU_SHARE || interval.lagMs > BUSY_LAG_MS) this.#busy.add(interval.second);
  }

  /** A process ended before it had reported everything: its figures are missing. */
  addDeath(index: number, how: string): void {
    const message = `generator process ${index} died (${how}); what it did last is not in the figures`;
    this.#errors.set(`generator died ${index}`, {
      leg: "generator",
      kind: "process-died",
      message,
      count: 1,
    });
    this.#deaths += 1;
  }

  /** The newest second that is there. */
  get latest(): {
    readonly second: number;
    readonly active: number;
    readonly receivedBytes: number;
    readonly sentBytes: number;
  } {
    return { second: this.#seconds.length, ...(this.#seconds.at(-1)?.total ?? NO_TOTAL) };
  }

  report(wasInterrupted: boolean): LoadReport {
    const sum = (key: (typeof TOTALS)[number]) =>
      this.#seconds.reduce((all, { total }) => all + total[key], 0);
    const { path: _, ...plan } = this.#plan;
    const seconds = Math.round(this.#untilMs / 100) / 10;
    return {
      plan,
      startedAt: new Date(this.#startAtMs).toISOString(),
      seconds,
      wasInterrupted,
      sessions: { started: sum("started"), finished: sum("finished"), failed: sum("failed") + this.#deaths },
      bytes: { sent: sum("sentBytes"), received: sum("receivedBytes") },
      messages: { sent: sum("sentMessages"), received: sum("receivedMessages") },
      latencies: mapLatencies((name) => summaryOf(this.#latencies[name])),
      errors: [...this.#errors.values()].sort((a, b) => b.count - a.count),
      generator: {
        processes: this.#processes,
        maxCpuShare: this.#maxCpuShare,
        maxLagMs: this.#maxLagMs,
        busySeconds: this.#busy.size,
        wasBottleneck: this.#busy.size > this.#seconds.length / 10,
      },
      perSecond: this.#seconds.map(({ total, latencies }, second) => ({
        second,
        active: total.active,
        started: total.started,
        failed: total.failed,
        sentBytes: total.sentBytes,
        receivedBytes: total.receivedBytes,
        latencies: mapLatencies((name) => latencies[name].toSparse()),
      })),
    };
  }

  summaryOf(name: LatencyName): LatencySummary {
    return summaryOf(this.#latencies[name]);
  }

  get failed(): number {
    return this.#seconds.reduce((all, { total }) => all + total.failed, 0);
  }
}

const TOTALS = [
  "active",
  "started",
  "finished",
  "failed",
  "sentBytes",
  "receivedBytes",
  "sentMessages",
  "receivedMessages",
] as const;
type SecondTotal = Record<(typeof TOTALS)[number], number>;
const NO_TOTAL = Object.fromEntries(TOTALS.map((key) => [key, 0])) as SecondTotal;

function mapLatencies<T>(of: (name: LatencyName) => T): Record<LatencyName, T> {
  return { firstByte: of("firstByte"), message: of("message"), session: of("session") };
}

function summaryOf(counts: LatencyCounts): LatencySummary {
  return {
    count: counts.total,
    p50Us: counts.percentileUs(0.5),
    p90Us: counts.percentileUs(0.9),
    p99Us: counts.percentileUs(0.99),
    p999Us: counts.percentileUs(0.999),
    maxUs: counts.maxUs,
  };
}
