import { addHttpReports, type HttpLoadReport } from "./http-report.ts";
import type { LoadPlan } from "./load-plan.ts";
import { LoadCollector, type LoadReport, type ReportParts } from "./load-report.ts";

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
  return { starts, startAtMs, parts: { of: parts.of, present, startSpreadMs } satisfies ReportParts };
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
