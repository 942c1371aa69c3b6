import { ConnectError, SessionError } from "@sluice/client";
import { LatencyCounts, type SparseCounts } from "./latency-counts.ts";

/**
 * The times that are measured: to a session's first byte, of a message's round trip, and of a whole
 * session.
 */
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
  /** Sessions that are running when the second ends. */
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

/**
 * Where a session failed: while connecting ("proxy", "tcp", "tls", "http", "handshake", "response"), while
 * running ("session"), by wrong content ("verify"), or in the generator ("generator").
 */
type LoadLeg = string;

/** A failure that the load generator itself found. */
export class LoadError extends Error {
  override readonly name = "LoadError";
  readonly leg: LoadLeg;
  readonly kind: string;

  constructor(leg: LoadLeg, kind: string, message: string) {
    super(message);
    this.leg = leg;
    this.kind = kind;
  }
}

interface ClassifiedError {
  readonly leg: LoadLeg;
  /** One of a few stable names, because they are counted. */
  readonly kind: string;
  readonly message: string;
}

const MAX_EXAMPLE_CHARACTERS = 300;

function classify(error: unknown): ClassifiedError {
  const message = (error instanceof Error ? error.message : String(error)).slice(0, MAX_EXAMPLE_CHARACTERS);
  if (error instanceof LoadError) return { leg: error.leg, kind: error.kind, message };
  if (error instanceof SessionError) return { leg: "session", kind: error.code, message };
  if (error instanceof ConnectError) return { leg: error.leg, kind: kindOf(error), message };
  const { code } = error as NodeJS.ErrnoException;
  return { leg: "generator", kind: code ?? "error", message };
}

function kindOf({ httpStatus, apiStatus, cause, leg }: ConnectError): string {
  if (leg === "http") return [httpStatus, apiStatus?.reason].filter((part) => part !== undefined).join(" ");
  const { code } = (cause instanceof Error ? (cause.cause ?? cause) : {}) as NodeJS.ErrnoException;
  return code ?? "failed";
}
