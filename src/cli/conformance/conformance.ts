import { readFile, writeFile } from "node:fs/promises";
import {
  ALL_CASES,
  type CaseReport,
  type ConformanceCase,
  type ConformanceReport,
  compareWith,
  comparisonText,
  conformancePage,
  junitReport,
  type LabSettings,
  parseReport,
  quickLabSettings,
  runConformance,
  textReport,
} from "@sluice/lab/conformance";
import { maskControls } from "../../observability/mask-controls.ts";
import type { Invocation, ValuesOf } from "../command.ts";
import type { conformanceFlags } from "../commands/conformance.ts";
import { terminationSignal } from "../termination-signal.ts";
import { UsageError } from "../usage-error.ts";
import { openEndpoint } from "./conformance-endpoint.ts";
import { openConformanceView } from "./conformance-view.ts";

/**
 * Tests an endpoint against the requirements of Kubernetes' streams. Exit code 1 if a case of
 * severity "must" failed.
 */
export async function run({ values }: Invocation<typeof conformanceFlags>): Promise<number> {
  const cases = casesOf(values.only);
  if (values.list) {
    const [ignored] = (["pod", "json", "junit", "html", "baseline"] as const).filter(
      (name) => values[name] !== undefined,
    );
    if (ignored !== undefined)
      throw new UsageError(`--list runs no case, so that --${ignored} has nothing to do`);
    for (const { id, severity, requirement } of cases)
      process.stdout.write(`${id}  ${severity}  ${requirement}\n`);
    return 0;
  }
  const settings = settingsOf(values);
  // Reads the baseline before the run, to report its faults at once.
  const baseline = await baselineOf(values.baseline);
  const { endpoint, close } = await openEndpoint(values);
  const interrupted = new AbortController();
  void terminationSignal().then(() => interrupted.abort());
  const view = openConformanceView(cases.length);
  const report = await runConformance(endpoint, {
    cases,
    settings,
    signal: interrupted.signal,
    onWait: (count, longestMs) => view.wait(count, longestMs),
    onCase: (one: CaseReport, done: number) => view.update(one, done),
  });
  view.stop();
  close?.();
  const comparison = baseline && compareWith(baseline, report);
  const text = textReport(report) + (comparison === undefined ? "" : `\n${comparisonText(comparison)}`);
  const isReportOnStdout = [values.json, values.junit, values.html].includes("-");
  (isReportOnStdout ? process.stderr : process.stdout).write(maskControls(text));
  await write(values.json, () => `${JSON.stringify(report, null, 1)}\n`);
  await write(values.junit, () => junitReport(report));
  await write(values.html, () => conformancePage(report, comparison));
  if (report.counts.passed === 0) return 1;
  const decisive = comparison?.broken ?? report.cases.filter(({ verdict }) => verdict === "failed");
  return decisive.some(({ severity }) => severity === "must") ? 1 : 0;
}

async function baselineOf(file: string | undefined): Promise<ConformanceReport | undefined> {
  if (file === undefined) return undefined;
  try {
    return parseReport(await readFile(file, "utf8"));
  } catch (error) {
    throw new UsageError(`--baseline ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function settingsOf(values: ValuesOf<typeof conformanceFlags>): Partial<LabSettings> {
  const quick = values.quick ? quickLabSettings : {};
  const { idleScale = 1, bulkBytes = Number.POSITIVE_INFINITY } = quick;
  return {
    ...quick,
    echoPort: values["echo-port"],
    mayAttachInput: values["attach-input"],
    idleScale: Math.min(values["idle-scale"], idleScale),
    bulkBytes: Math.min(values["bulk-size"], bulkBytes),
  };
}

function casesOf(only: readonly string[]): readonly ConformanceCase[] {
  if (only.length === 0) return ALL_CASES;
  const unknown = only.find((prefix) => !ALL_CASES.some(({ id }) => id.startsWith(prefix)));
  if (unknown !== undefined) throw new UsageError(`--only ${unknown}: no case begins so; see --list`);
  return ALL_CASES.filter(({ id }) => only.some((prefix) => id.startsWith(prefix)));
}

async function write(file: string | undefined, text: () => string): Promise<void> {
  if (file === "-") process.stdout.write(text());
  else if (file !== undefined) await writeFile(file, text());
}
