import { SLUICE_VERSION } from "@sluice/client/internal/config/version";
import { LatencyCounts } from "./latency-counts.ts";
import {
  type JudgedThreshold,
  type LatencySummary,
  REPORT_FORMAT,
  type ReportParts,
  summaryOf,
} from "./load-report.ts";
import type { IntervalLatency } from "./recorder.ts";

/** The plan without the target, for reports. */
interface HttpPlan {
  readonly connections: number;
  readonly requestsPerSecond: number;
  readonly durationMs: number;
  readonly timeoutMs: number;
}

/** What `sluice load http --json` writes and `sluice load merge` reads. */
export interface HttpLoadReport {
  readonly kind: "HttpLoadReport";
  readonly format: typeof REPORT_FORMAT;
  /** The version of the program that ran the load. */
  readonly version: string;
  /** The plan of all parts together. */
  readonly plan: HttpPlan;
  readonly parts: ReportParts;
  readonly startedAt: string;
  readonly seconds: number;
  readonly wasInterrupted: boolean;
  readonly requests: number;
  readonly perSecond: number;
  readonly bytes: number;
  readonly byStatus: Readonly<Record<string, number>>;
  readonly errors: number;
  readonly timeouts: number;
  readonly latency: LatencySummary;
  /** The histogram behind `latency`. */
  readonly latencies: IntervalLatency;
  readonly thresholds: readonly JudgedThreshold[];
}

type HttpFigures = Pick<
  HttpLoadReport,
  "wasInterrupted" | "seconds" | "requests" | "bytes" | "byStatus" | "errors" | "timeouts"
> & { readonly counts: LatencyCounts };

export function httpReportOf(
  { connections, requestsPerSecond, durationMs, timeoutMs }: HttpPlan,
  parts: ReportParts,
  startedAtMs: number,
  { counts, ...figures }: HttpFigures,
): HttpLoadReport {
  const { requests, seconds } = figures;
  return {
    kind: "HttpLoadReport",
    format: REPORT_FORMAT,
    version: SLUICE_VERSION,
    plan: { connections, requestsPerSecond, durationMs, timeoutMs },
    parts,
    startedAt: new Date(startedAtMs).toISOString(),
    ...figures,
    perSecond: seconds === 0 ? 0 : requests / seconds,
    latency: summaryOf(counts),
    latencies: { counts: counts.toSparse(), maxUs: counts.maxUs },
    thresholds: [],
  };
}

/** Merges parts; `starts` are their start times in milliseconds since 1970. */
export function addHttpReports(
  reports: readonly [HttpLoadReport, ...HttpLoadReport[]],
  parts: ReportParts,
  starts: readonly number[],
): HttpLoadReport {
  const startAtMs = Math.min(...starts);
  const counts = new LatencyCounts();
  const byStatus: Record<string, number> = {};
  for (const { latencies, byStatus: some } of reports) {
    counts.add(latencies.counts, latencies.maxUs);
    for (const [status, times] of Object.entries(some)) byStatus[status] = (byStatus[status] ?? 0) + times;
  }
  const sum = (key: "requests" | "bytes" | "errors" | "timeouts"): number =>
    reports.reduce((all, report) => all + report[key], 0);
  const ends = reports.map(({ seconds }, index) => seconds + ((starts[index] ?? 0) - startAtMs) / 1_000);
  return httpReportOf(reports[0].plan, parts, startAtMs, {
    wasInterrupted: reports.some((report) => report.wasInterrupted),
    seconds: Math.round(Math.max(...ends) * 100) / 100,
    requests: sum("requests"),
    bytes: sum("bytes"),
    byStatus,
    errors: sum("errors"),
    timeouts: sum("timeouts"),
    counts,
  });
}
