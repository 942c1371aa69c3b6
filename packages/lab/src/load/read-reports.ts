import { type HttpLoadReport, httpReportOf } from "./http-load.ts";
import { LATENCY_BUCKETS, LatencyCounts } from "./latency-counts.ts";
import type { LoadPlan } from "./load-plan.ts";
import { LoadCollector, type LoadReport, REPORT_FORMAT } from "./load-report.ts";
import { LATENCIES } from "./recorder.ts";

/** Finds the start of a report within a line, for example of a pod's log. */
const START = /\{"kind":"(?:Http)?LoadReport"/;

/**
 * The reports in a text: one written by `--json`, or a log with one in some of its lines. Throws
 * RangeError.
 */
export function readReports(text: string): (LoadReport | HttpLoadReport)[] {
  const found = text.split("\n").flatMap((line) => {
    const start = line.search(START);
    return start === -1 ? [] : [line.slice(start)];
  });
  if (found.length === 0) throw new RangeError("there is no report of sluice load in it");
  return found.map(readReport);
}

function readReport(text: string): LoadReport | HttpLoadReport {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new RangeError("its report is not whole");
  }
  const { format } = value as { format?: unknown };
  if (format !== REPORT_FORMAT) {
    throw new RangeError(`its report has format ${String(format)}, this program reads ${REPORT_FORMAT}`);
  }
  const report = value as LoadReport | HttpLoadReport;
  const wrong =
    wrongField(report) ?? (report.kind === "LoadReport" ? wrongOfSessions(report) : wrongOfHttp(report));
  if (wrong !== undefined) throw new RangeError(`${wrong} of its report is wrong`);
  return report;
}

const NUMBERS = [
  ...["untilMs", "started", "finished", "failed", "active", "cpuShare", "lagMs"],
  ...["sentBytes", "receivedBytes", "sentMessages", "receivedMessages"],
] as const;

const HTTP_NUMBERS = ["seconds", "requests", "bytes", "errors", "timeouts"] as const;

/** The first field that cannot be merged. */
function wrongField({
  version,
  plan,
  parts,
  startedAt,
}: Partial<LoadReport | HttpLoadReport>): string | undefined {
  if (typeof version !== "string") return "version";
  if (!isObject(plan) || !isCount(plan.durationMs) || !isCount(plan.timeoutMs)) return "plan";
  if (!isObject(parts) || !isCount(parts.of) || !isCount(parts.startSpreadMs)) return "parts";
  const isPart = (part: unknown): boolean => isCount(part) && Number.isInteger(part) && part < parts.of;
  if (!isListOf(parts.present, isPart) || parts.present.length === 0) return "parts.present";
  if (typeof startedAt !== "string" || !Number.isFinite(Date.parse(startedAt))) return "startedAt";
  return undefined;
}

function wrongOfHttp(report: Partial<HttpLoadReport>): string | undefined {
  const wrong = HTTP_NUMBERS.find((name) => !isCount(report[name]));
  if (wrong !== undefined) return wrong;
  if (!isObject(report.byStatus) || !Object.values(report.byStatus).every(isCount)) return "byStatus";
  return isLatency(report.latencies) ? undefined : "latencies";
}

function wrongOfSessions({ errors, generator, perSecond }: Partial<LoadReport>): string | undefined {
  if (!isObject(generator) || !isCount(generator.processes) || !isCount(generator.deaths)) return "generator";
  if (!isListOf(errors, isError)) return "errors";
  if (!isListOf(perSecond, isSecond)) return "perSecond";
  return undefined;
}

function isSecond(value: unknown, index: number): boolean {
  if (!isObject(value) || value.second !== index || !isObject(value.latencies)) return false;
  const { latencies } = value;
  return (
    NUMBERS.every((name) => isCount(value[name])) && LATENCIES.every((name) => isLatency(latencies[name]))
  );
}

function isLatency(value: unknown): boolean {
  return isObject(value) && isCount(value.maxUs) && isListOf(value.counts, isBucket);
}

function isBucket(value: unknown): boolean {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [bucket, count] = value as unknown[];
  return isCount(bucket) && Number.isInteger(bucket) && bucket < LATENCY_BUCKETS && isCount(count);
}

function isError(value: unknown): boolean {
  if (!isObject(value) || !isCount(value.count)) return false;
  return [value.leg, value.kind, value.message].every((text) => typeof text === "string");
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isListOf(value: unknown, is: (value: unknown, index: number) => boolean): value is unknown[] {
  return Array.isArray(value) && value.every(is);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

type Report = LoadReport | HttpLoadReport;

/** A report and its name for operators. */
export interface NamedReport<R extends Report = Report> {
  readonly name: string;
  readonly report: R;
}
type Some<T> = readonly [T, ...T[]];

/**
 * Merges the histograms and counts of parts that ran side by side. Throws RangeError, naming both
 * files, if parts belong to different loads. Parts may be missing: see `missingParts`.
 */
export function mergeReports(reports: Some<NamedReport<LoadReport>>): LoadReport {
  const { parts, starts, startAtMs } = joined(reports);
  const processes = reports.reduce((sum, { report }) => sum + report.generator.processes, 0);
  const collector = new LoadCollector(reports[0].report.plan, processes, startAtMs, parts);
  for (const [index, { report }] of reports.entries()) {
    const late = Math.round(((starts[index] ?? 0) - startAtMs) / 1_000);
    for (const second of report.perSecond) {
      collector.addSecond({
        ...second,
        second: second.second + late,
        untilMs: second.untilMs + late * 1_000,
      });
    }
    for (const error of report.errors) collector.addError(error);
    collector.addDeaths(report.generator.deaths);
  }
  return collector.report(reports.some(({ report }) => report.wasInterrupted));
}

/** Like `mergeReports`, for plain requests. */
export function mergeHttpReports(reports: Some<NamedReport<HttpLoadReport>>): HttpLoadReport {
  const { parts, starts } = joined(reports);
  const [first, ...others] = reports;
  return addHttpReports([first.report, ...others.map(({ report }) => report)], parts, starts);
}

function joined(reports: Some<NamedReport>) {
  const [first] = reports;
  for (const other of reports) checkSameLoad(first, other);
  const present = presentParts(reports);
  const starts = reports.map(({ report }) => Date.parse(report.startedAt));
  const startAtMs = Math.min(...starts);
  const startSpreadMs =
    Math.max(...reports.map(({ report }, index) => (starts[index] ?? 0) + report.parts.startSpreadMs)) -
    startAtMs;
  const { plan, parts } = first.report;
  if (startSpreadMs > plan.durationMs + plan.timeoutMs) {
    const seconds = Math.round(startSpreadMs / 1_000);
    throw new RangeError(`the parts did not run side by side: one started ${seconds} s after another`);
  }
  return { starts, startAtMs, parts: { of: parts.of, present, startSpreadMs } satisfies LoadReport["parts"] };
}

/** Indexes of parts without a report. */
export function missingParts({ parts }: Pick<Report, "parts">): number[] {
  return Array.from({ length: parts.of }, (_, index) => index).filter(
    (index) => !parts.present.includes(index),
  );
}

function checkSameLoad(first: NamedReport, other: NamedReport): void {
  const differ = (what: string, one: unknown, another: unknown): void => {
    if (one !== another)
      throw new RangeError(`${other.name}: ${what} ${String(another)}, but ${String(one)} in ${first.name}`);
  };
  const [one, another] = [first.report, other.report];
  differ("it is of sluice", one.version, another.version);
  const plans: readonly Partial<LoadPlan>[] = [one.plan, another.plan];
  for (const field of plans.flatMap((plan) => Object.keys(plan) as (keyof LoadPlan)[]))
    differ(`${field} is`, plans[0]?.[field], plans[1]?.[field]);
  differ("the number of parts is", one.parts.of, another.parts.of);
  if (one.kind === "LoadReport" && another.kind === "LoadReport")
    differ("processes of a part are", processesOfPart(one), processesOfPart(another));
}

function processesOfPart({ generator, parts }: LoadReport): number {
  return generator.processes / parts.present.length;
}

function presentParts(reports: readonly NamedReport[]): number[] {
  const files = new Map<number, string>();
  for (const { name, report } of reports) {
    for (const part of report.parts.present) {
      const other = files.get(part);
      if (other !== undefined)
        throw new RangeError(`${name}: part ${part} of ${report.parts.of} is in ${other}, too`);
      files.set(part, name);
    }
  }
  return [...files.keys()].sort((a, b) => a - b);
}

/** Merges parts; `starts` are their start times in milliseconds since 1970. */
function addHttpReports(
  reports: readonly [HttpLoadReport, ...HttpLoadReport[]],
  parts: LoadReport["parts"],
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
