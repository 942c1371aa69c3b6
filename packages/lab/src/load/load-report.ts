import { SLUICE_VERSION } from "@sluice/client/internal/config/version";
import type { LatencyCounts } from "./latency-counts.ts";
import type { LoadPart, LoadPlan } from "./load-plan.ts";
import {
  type CountedError,
  type Interval,
  LATENCIES,
  type LatencyName,
  type LoadSecond,
  newLatencies,
} from "./recorder.ts";

/**
 * If a process exceeds this CPU share, or this lag, in a second, it was too busy to measure well.
 */
const BUSY_CPU_SHARE = 0.85;
const BUSY_LAG_MS = 50;

/** Version of the report's layout. `sluice load merge` reads only this one. */
export const REPORT_FORMAT = 1;

interface LatencySummary {
  readonly count: number;
  readonly p50Us: number;
  readonly p90Us: number;
  readonly p99Us: number;
  readonly p999Us: number;
  readonly maxUs: number;
}

/** `us`: microseconds. `share`: from 0 to 1. `bytes`: payload per second. */
type Unit = "us" | "share" | "number" | "bytes";

/** One `--threshold` and its measured value. */
export interface JudgedThreshold {
  /** The threshold as the user wrote it. */
  readonly text: string;
  readonly unit: Unit;
  /** Null if nothing was measured, which meets no threshold. */
  readonly value: number | null;
  readonly isMet: boolean;
}

/** `present`: the indexes, from 0, of the parts in these figures. */
interface ReportParts {
  readonly of: number;
  readonly present: readonly number[];
  readonly startSpreadMs: number;
}

/** Written by `--json` and read by `sluice load merge`. */
export interface LoadReport {
  readonly kind: "LoadReport";
  readonly format: typeof REPORT_FORMAT;
  /** The version of the program that ran the load. */
  readonly version: string;
  /** The plan of all parts, without the path, which may name pods and commands. */
  readonly plan: Omit<LoadPlan, "path">;
  readonly parts: ReportParts;
  readonly startedAt: string;
  readonly seconds: number;
  readonly wasInterrupted: boolean;
  readonly sessions: { readonly started: number; readonly finished: number; readonly failed: number };
  readonly bytes: { readonly sent: number; readonly received: number };
  readonly messages: { readonly sent: number; readonly received: number };
  readonly latencies: Readonly<Record<LatencyName, LatencySummary>>;
  readonly errors: readonly CountedError[];
  readonly thresholds: readonly JudgedThreshold[];
  readonly generator: {
    readonly processes: number;
    /** The number of processes that died before reporting everything. */
    readonly deaths: number;
    /** The largest CPU share of one process in a second, and its event loop's lag. */
    readonly maxCpuShare: number;
    readonly maxLagMs: number;
    /** Seconds in which a process was too busy to measure well. */
    readonly busySeconds: number;
    readonly wasBottleneck: boolean;
  };
  readonly perSecond: readonly LoadSecond[];
}

/** Merges the reports of processes: each interval, or the seconds, errors and deaths of a whole report. */
export class LoadCollector {
  readonly #plan: Omit<LoadPlan, "path">;
  readonly #processes: number;
  readonly #startAtMs: number;
  readonly #parts: LoadReport["parts"];
  readonly #latencies = newLatencies();
  readonly #errors = new Map<string, CountedError>();
  readonly #seconds: Second[] = [];
  #deaths = 0;

  constructor(
    plan: Omit<LoadPlan, "path">,
    processes: number,
    startAtMs: number,
    parts: LoadReport["parts"] = partsOf({ index: 0, of: 1 }),
  ) {
    this.#plan = plan;
    this.#processes = processes;
    this.#startAtMs = startAtMs;
    this.#parts = parts;
  }

  add({ errors, ...second }: Interval): void {
    this.addSecond(second);
    for (const error of errors) this.addError(error);
  }

  addSecond(added: LoadSecond): void {
    while (this.#seconds.length <= added.second) {
      this.#seconds.push({ total: { ...NO_TOTAL }, largest: { ...NO_LARGEST }, latencies: newLatencies() });
    }
    const second = this.#seconds[added.second];
    if (second === undefined) return;
    for (const key of TOTALS) second.total[key] += added[key];
    for (const key of LARGEST) second.largest[key] = Math.max(second.largest[key], added[key]);
    for (const name of LATENCIES) {
      const { counts, maxUs } = added.latencies[name];
      second.latencies[name].add(counts, maxUs);
      this.#latencies[name].add(counts, maxUs);
    }
  }

  addError(error: CountedError): void {
    const key = `${error.leg} ${error.kind}`;
    const count = (this.#errors.get(key)?.count ?? 0) + error.count;
    this.#errors.set(key, { ...error, count });
  }

  /** A process died before reporting everything, so figures are missing. */
  addDeath(index: number, how: string): void {
    const message = `generator process ${index} died (${how}); what it did last is not in the figures`;
    this.addError({ leg: "generator", kind: "process-died", message, count: 1 });
    this.addDeaths(1);
  }

  addDeaths(count: number): void {
    this.#deaths += count;
  }

  /** The newest second with data. */
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
    const max = (key: (typeof LARGEST)[number]) =>
      this.#seconds.reduce((all, { largest }) => Math.max(all, largest[key]), 0);
    const { path: _, ...plan } = this.#plan as LoadPlan;
    const busySeconds = this.#seconds.filter(isBusy).length;
    return {
      kind: "LoadReport",
      format: REPORT_FORMAT,
      version: SLUICE_VERSION,
      plan,
      parts: this.#parts,
      startedAt: new Date(this.#startAtMs).toISOString(),
      seconds: Math.round(max("untilMs") / 100) / 10,
      wasInterrupted,
      sessions: { started: sum("started"), finished: sum("finished"), failed: sum("failed") + this.#deaths },
      bytes: { sent: sum("sentBytes"), received: sum("receivedBytes") },
      messages: { sent: sum("sentMessages"), received: sum("receivedMessages") },
      latencies: mapLatencies((name) => summaryOf(this.#latencies[name])),
      errors: [...this.#errors.values()].sort((a, b) => b.count - a.count),
      thresholds: [],
      generator: {
        processes: this.#processes,
        deaths: this.#deaths,
        maxCpuShare: max("cpuShare"),
        maxLagMs: max("lagMs"),
        busySeconds,
        wasBottleneck: busySeconds > this.#seconds.length / 10,
      },
      perSecond: this.#seconds.map(({ total, largest, latencies }, second) => ({
        second,
        ...total,
        ...largest,
        latencies: mapLatencies((name) => ({
          counts: latencies[name].toSparse(),
          maxUs: latencies[name].maxUs,
        })),
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
/** The largest of several processes' values counts, not their sum. */
const LARGEST = ["untilMs", "cpuShare", "lagMs"] as const;
const NO_TOTAL = Object.fromEntries(TOTALS.map((key) => [key, 0])) as Second["total"];
const NO_LARGEST = Object.fromEntries(LARGEST.map((key) => [key, 0])) as Second["largest"];

interface Second {
  readonly total: Record<(typeof TOTALS)[number], number>;
  readonly largest: Record<(typeof LARGEST)[number], number>;
  readonly latencies: Record<LatencyName, LatencyCounts>;
}

function isBusy({ largest: { cpuShare, lagMs } }: Second): boolean {
  return cpuShare > BUSY_CPU_SHARE || lagMs > BUSY_LAG_MS;
}

/** A run with one part has no spread of starts. */
export function partsOf({ index, of }: LoadPart): LoadReport["parts"] {
  return { of, present: [index], startSpreadMs: 0 };
}

function mapLatencies<T>(of: (name: LatencyName) => T): Record<LatencyName, T> {
  return { firstByte: of("firstByte"), message: of("message"), session: of("session") };
}

export function summaryOf(counts: LatencyCounts): LatencySummary {
  return {
    count: counts.total,
    p50Us: counts.percentileUs(0.5),
    p90Us: counts.percentileUs(0.9),
    p99Us: counts.percentileUs(0.99),
    p999Us: counts.percentileUs(0.999),
    maxUs: counts.maxUs,
  };
}
