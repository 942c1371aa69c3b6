import { writeFile } from "node:fs/promises";
import {
  htmlReport,
  type JudgedThreshold,
  judge,
  judgesFailures,
  type LoadReport,
  type Metrics,
  parseThreshold,
  summaryText,
  type Threshold,
} from "@sluice/lab/load";
import { maskControls, quietJson } from "../../observability/mask-controls.ts";
import { UsageError } from "../command.ts";
import type { LoadValues } from "../commands/load.ts";

/** Differs from 1, so that a pipeline can tell a slow server from a failed run; k6 uses the same code. */
const THRESHOLD_NOT_MET = 99;

/** Throws UsageError. */
export function thresholdsOf<Report>(
  { threshold }: Pick<LoadValues, "threshold">,
  metrics: Metrics<Report>,
): Threshold<Report>[] {
  return threshold.map((text) => {
    try {
      return parseThreshold(text, metrics);
    } catch (error) {
      throw new UsageError(`--threshold ${text}: ${(error as Error).message}`);
    }
  });
}

/** Judges a report, prints its table and writes its files. Resolves to the exit code. */
export async function publish(
  unjudged: LoadReport,
  thresholds: readonly Threshold<LoadReport>[],
  { json, html }: Pick<LoadValues, "json" | "html">,
): Promise<number> {
  const report = { ...unjudged, thresholds: judge(unjudged, thresholds) };
  const isFileShown = json === "-" || html === "-";
  (isFileShown ? process.stderr : process.stdout).write(maskControls(summaryText(report)));
  await writeReport(json, () => quietJson(report));
  await writeReport(html, () => htmlReport(report));
  return exitCodeOf(report.sessions, thresholds, report.thresholds);
}

/** `file`: `-` means standard output. */
export async function writeReport(
  file: string | undefined,
  text: () => string | Promise<string>,
): Promise<void> {
  if (file === undefined) return;
  const written = `${(await text()).trimEnd()}\n`;
  if (file === "-") process.stdout.write(written);
  else await writeFile(file, written);
}

export function exitCodeOf(
  { finished, failed }: { readonly finished: number; readonly failed: number },
  thresholds: readonly { readonly metric: string }[],
  judged: readonly JudgedThreshold[],
): number {
  if (judged.some(({ isMet }) => !isMet)) return THRESHOLD_NOT_MET;
  const isFailed = failed > 0 && !judgesFailures(thresholds);
  return isFailed || finished === 0 ? 1 : 0;
}
