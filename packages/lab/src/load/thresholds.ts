import { parseQuantity } from "@sluice/client/internal/config/quantity";
import type { HttpLoadReport } from "./http-load.ts";
import { LatencyCounts } from "./latency-counts.ts";
import type { JudgedThreshold, LoadReport } from "./load-report.ts";
import type { IntervalLatency, LatencyName } from "./recorder.ts";

const OPERATORS = {
  "<=": (value: number, limit: number) => value <= limit,
  ">=": (value: number, limit: number) => value >= limit,
  "<": (value: number, limit: number) => value < limit,
  ">": (value: number, limit: number) => value > limit,
} as const;

/** A figure that may have a threshold in one kind of report. */
interface Metric<Report> {
  readonly unit: JudgedThreshold["unit"];
  /** Undefined if nothing was measured. */
  readonly measure: (report: Report, aggregate: string) => number | undefined;
  /** For samples: the possible aggregates. */
  readonly aggregates?: { readonly are: string; readonly has: (text: string) => boolean };
}
export type Metrics<Report> = Readonly<Record<string, Metric<Report>>>;

export interface Threshold<Report> {
  /** The threshold as the user wrote it. */
  readonly text: string;
  readonly metric: string;
  readonly unit: JudgedThreshold["unit"];
  readonly isMet: (value: number) => boolean;
  readonly measure: (report: Report) => number | undefined;
}

/** Metrics whose threshold accepts a number of failures. */
const FAILURES: readonly string[] = ["error_rate", "failed"];

const PERCENTILES = { are: "p50, p99, p99.9 and the like, max", has: isPercentileOrMax };

export const SESSION_METRICS: Metrics<LoadReport> = {
  first_byte_latency: latency("firstByte"),
  message_latency: latency("message"),
  session_latency: latency("session"),
  error_rate: {
    unit: "share",
    measure: ({ sessions: { finished, failed } }) => shareOf(failed, finished + failed),
  },
  failed: { unit: "number", measure: ({ sessions }) => sessions.failed },
  session_rate: { unit: "number", measure: ({ sessions, seconds }) => perSecond(sessions.finished, seconds) },
  message_rate: { unit: "number", measure: ({ messages, seconds }) => perSecond(messages.sent, seconds) },
  sent_throughput: { unit: "bytes", measure: ({ bytes, seconds }) => perSecond(bytes.sent, seconds) },
  received_throughput: { unit: "bytes", measure: ({ bytes, seconds }) => perSecond(bytes.received, seconds) },
};

export const HTTP_METRICS: Metrics<HttpLoadReport> = {
  request_latency: {
    unit: "us",
    aggregates: PERCENTILES,
    measure: ({ latencies }, aggregate) => measured([latencies], aggregate),
  },
  error_rate: {
    unit: "share",
    measure: ({ errors, timeouts, requests }) => shareOf(errors + timeouts, requests + errors + timeouts),
  },
  failed: { unit: "number", measure: ({ errors, timeouts }) => errors + timeouts },
  request_rate: { unit: "number", measure: ({ requests, seconds }) => perSecond(requests, seconds) },
  received_throughput: { unit: "bytes", measure: ({ bytes, seconds }) => perSecond(bytes, seconds) },
};

/** `METRIC[:AGGREGATE]OPERATOR VALUE`, such as `message_latency:p99<50ms`. Throws RangeError. */
export function parseThreshold<Report>(text: string, metrics: Metrics<Report>): Threshold<Report> {
  const [, name = "", aggregate = "", operator = "", value = ""] =
    /^\s*([a-z_]+)(?::([a-z0-9.]+))?\s*(<=|>=|<|>)\s*(\S+)\s*$/.exec(text) ?? [];
  if (name === "") throw new RangeError("must be METRIC[:AGGREGATE]<VALUE, such as message_latency:p99<50ms");
  const metric = Object.hasOwn(metrics, name) ? metrics[name] : undefined;
  if (metric === undefined) throw new RangeError(`${name} is none of ${Object.keys(metrics).join(", ")}`);
  const { unit, aggregates, measure } = metric;
  if (aggregates === undefined ? aggregate !== "" : !aggregates.has(aggregate)) {
    throw new RangeError(`the aggregate of ${name} must be ${aggregates?.are ?? "left out"}`);
  }
  const limit = LIMITS[unit](value);
  const compare = OPERATORS[operator as keyof typeof OPERATORS];
  return {
    text,
    metric: name,
    unit,
    isMet: (measured) => compare(measured, limit),
    measure: (report) => measure(report, aggregate),
  };
}

export function judge<Report>(
  report: Report,
  thresholds: readonly Threshold<Report>[],
): readonly JudgedThreshold[] {
  return thresholds.map(({ text, unit, isMet, measure }) => {
    const value = measure(report);
    return { text, unit, value: value ?? null, isMet: value !== undefined && isMet(value) };
  });
}

/** Whether a threshold judges failures, so that they do not fail the run by themselves. */
export function judgesFailures(thresholds: readonly { readonly metric: string }[]): boolean {
  return thresholds.some(({ metric }) => FAILURES.includes(metric));
}

function latency(name: LatencyName): Metric<LoadReport> {
  return {
    unit: "us",
    aggregates: PERCENTILES,
    measure: ({ perSecond }, aggregate) =>
      measured(
        perSecond.map(({ latencies }) => latencies[name]),
        aggregate,
      ),
  };
}

function measured(latencies: readonly IntervalLatency[], aggregate: string): number | undefined {
  const counts = new LatencyCounts();
  for (const each of latencies) counts.add(each.counts, each.maxUs);
  if (counts.total === 0) return undefined;
  return aggregate === "max" ? counts.maxUs : counts.percentileUs(Number(aggregate.slice(1)) / 100);
}

function isPercentileOrMax(text: string): boolean {
  const [, percent = ""] = /^p(\d{1,2}(?:\.\d{1,3})?|100)$/.exec(text) ?? [];
  return text === "max" || Number(percent) > 0;
}

const MICROSECONDS: Readonly<Record<string, number>> = { ms: 1_000, s: 1_000_000, m: 60_000_000 };

const LIMITS: Readonly<Record<JudgedThreshold["unit"], (text: string) => number>> = {
  us: (text) => {
    const [, number = "", unit = ""] = /^(\d+(?:\.\d+)?)(us|µs|ms|s|m)$/.exec(text) ?? [];
    if (number !== "") return Number(number) * (MICROSECONDS[unit] ?? 1);
    throw new RangeError(`${JSON.stringify(text)} must be a duration such as 50ms`);
  },
  share: (text) => {
    const share = text.endsWith("%") ? numberOf(text.slice(0, -1)) / 100 : numberOf(text);
    if (share <= 1) return share;
    throw new RangeError(`${text} must be at most 100%`);
  },
  number: numberOf,
  bytes: (text) => {
    try {
      return parseQuantity(text);
    } catch {
      throw new RangeError(`${JSON.stringify(text)} must be a quantity of bytes such as 10Mi`);
    }
  },
};

function numberOf(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  throw new RangeError(`${JSON.stringify(text)} must be a number`);
}

function shareOf(part: number, all: number): number | undefined {
  return all === 0 ? undefined : part / all;
}

function perSecond(total: number, seconds: number): number | undefined {
  return seconds === 0 ? undefined : total / seconds;
}
