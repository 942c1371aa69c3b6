import type { LoadPlan } from "./load-plan.ts";
import { LoadCollector, type LoadReport } from "./load-report.ts";

/** A report, and what operators know it by. */
export interface NamedReport {
  readonly name: string;
  readonly report: LoadReport;
}

/**
 * Adds up histograms and counts of parts that ran side by side. Throws RangeError, naming both files, for
 * parts that are not of one load. Some may be missing: see `missingParts`.
 */
export function mergeReports(reports: readonly [NamedReport, ...NamedReport[]]): LoadReport {
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
  const processes = reports.reduce((sum, { report }) => sum + report.generator.processes, 0);
  const collector = new LoadCollector(plan, processes, startAtMs, { of: parts.of, present, startSpreadMs });
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

/** Indexes of parts without a report. */
export function missingParts({ parts }: LoadReport): number[] {
  return Array.from({ length: parts.of }, (_, index) => index).filter(
    (index) => !parts.present.includes(index),
  );
}

function checkSameLoad(first: NamedReport, other: NamedReport): void {
  const differ = (what: string, of: (report: LoadReport) => unknown): void => {
    const [one, two] = [of(first.report), of(other.report)];
    if (one !== two)
      throw new RangeError(`${other.name}: ${what} ${String(two)}, but ${String(one)} in ${first.name}`);
  };
  differ("it is of sluice", ({ version }) => version);
  for (const field of Object.keys({
    ...first.report.plan,
    ...other.report.plan,
  }) as (keyof LoadReport["plan"])[]) {
    differ(`${field} is`, ({ plan }: { plan: Partial<LoadPlan> }) => plan[field]);
  }
  differ("the number of parts is", ({ parts }) => parts.of);
  differ("processes of a part are", ({ generator, parts }) => generator.processes / parts.present.length);
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
