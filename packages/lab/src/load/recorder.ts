import { LatencyCounts, type SparseCounts } from "./latency-counts.ts";
import { type ClassifiedError, classify } from "./load-error.ts";

/** The measured times: to a session's first byte, a message's round trip, and a whole session. */
export const LATENCIES = ["firstByte", "message", "session"] as const;
export type LatencyName = (typeof LATENCIES)[number];

export interface IntervalLatency {
  readonly counts: SparseCounts;
  readonly maxUs: number;
}

export interface CountedError extends ClassifiedError {
  readonly count: number;
}

/** The counts of one second, for one process or for all. Plain data. */
export interface LoadSecond {
  /** Seconds since the start of the run. */
  readonly second: number;
  /** The second's real end, in milliseconds since the start of the run. */
  readonly untilMs: number;
  readonly started: number;
  readonly finished: number;
  readonly failed: number;
  /** Sessions that run at the second's end. */
  readonly active: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly sentMessages: number;
  readonly receivedMessages: number;
  readonly latencies: Readonly<Record<LatencyName, IntervalLatency>>;
  /** The process' CPU share of one core; of several processes, the largest. */
  readonly cpuShare: number;
  /** The event loop's worst lag, in milliseconds. */
  readonly lagMs: number;
}

/** The counts of one process in one second. */
export interface Interval extends LoadSecond {
  readonly errors: readonly CountedError[];
}

const noCounts = () => ({
  started: 0,
  finished: 0,
  failed: 0,
  sentBytes: 0,
  receivedBytes: 0,
  sentMessages: 0,
  receivedMessages: 0,
});

/** Counts events until `interval` is called, and then starts over from zero. */
export class Recorder {
  counts = noCounts();
  active = 0;
  #latencies = newLatencies();
  #errors = new Map<string, CountedError>();

  latency(name: LatencyName, latencyMs: number): void {
    this.#latencies[name].record(latencyMs);
  }

  error(error: unknown): void {
    const { leg, kind, message } = classify(error);
    const key = `${leg} ${kind}`;
    const count = (this.#errors.get(key)?.count ?? 0) + 1;
    this.#errors.set(key, { leg, kind, message, count });
  }

  interval(second: number, own: { untilMs: number; cpuShare: number; lagMs: number }): Interval {
    const latencies = this.#latencies;
    const interval = {
      second,
      ...this.counts,
      active: this.active,
      latencies: Object.fromEntries(
        LATENCIES.map((name) => [name, { counts: latencies[name].toSparse(), maxUs: latencies[name].maxUs }]),
      ) as Record<LatencyName, IntervalLatency>,
      errors: [...this.#errors.values()],
      ...own,
    };
    this.counts = noCounts();
    this.#latencies = newLatencies();
    this.#errors = new Map();
    return interval;
  }
}

export function newLatencies(): Record<LatencyName, LatencyCounts> {
  return { firstByte: new LatencyCounts(), message: new LatencyCounts(), session: new LatencyCounts() };
}
