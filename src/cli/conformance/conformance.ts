import { writeFile } from "node:fs/promises";
import { readUpTo } from "@sluice/client/internal/config/named-file-text";
import { systemErrorReason } from "@sluice/client/internal/config/system-error";
import { ALL_CASES } from "@sluice/lab/conformance/all-cases";
import type { ConformanceCase } from "@sluice/lab/conformance/conformance-case";
import {
  type CaseReport,
  type ConformanceReport,
  compareWith,
  comparisonText,
  junitReport,
  parseReport,
} from "@sluice/lab/conformance/conformance-report";
import {
  apiServerEndpoint,
  type Endpoint,
  kubeletEndpoint,
  runtimeEndpoint,
  type SessionRequest,
} from "@sluice/lab/conformance/endpoint";
import { type LabSettings, quickLabSettings } from "@sluice/lab/conformance/lab-settings";
import { caseLine, conformancePage, textReport } from "@sluice/lab/conformance/report-texts";
import { runConformance } from "@sluice/lab/conformance/run-cases";
import cliProgress from "cli-progress";
import { DEFAULT_RUNTIME_ENDPOINT } from "../../config/sections/kubelet-listener.ts";
import { findRunningContainer, findSandbox } from "../../cri/pods.ts";
import { parseStreamingUrl } from "../../cri/streaming-url.ts";
import { maskControls, quietJson } from "../../observability/mask-controls.ts";
import { type Invocation, UsageError, type ValuesOf } from "../command.ts";
import { command } from "../commands/conformance.ts";
import type { TargetValues } from "../commands/target-flags.ts";
import { openTarget, serverSpecOf, targetSpecOf } from "../load/load-target.ts";
import { coloured } from "../print-text.ts";
import { openRuntime } from "../probe/probe-runtime.ts";
import { withTerminationSignal } from "../termination-signal.ts";

/** Servers without an API server in front; users must name the pod's container. */
const DIRECT_FLAGS = ["kubelet", "runtime-endpoint", "streaming-url"] as const;

interface OpenEndpoint {
  readonly endpoint: Endpoint;
  readonly close?: () => void;
}

type Values = Pick<ValuesOf<typeof command.flags>, "pod" | (typeof DIRECT_FLAGS)[number]> & TargetValues;

/**
 * Opens the endpoint that the flags name. Throws UsageError, ConfigurationError for a kubeconfig,
 * and a runtime's errors.
 */
export async function openEndpoint(values: Values): Promise<OpenEndpoint> {
  if (values.pod === undefined) {
    throw new UsageError(`--pod ${command.flags.pod.value} is required`, { showsUsage: true });
  }
  const [namespace = "", name = "", container, ...rest] = values.pod.split("/");
  if (namespace === "" || name === "" || container === "" || rest.length > 0)
    throw new UsageError(`--pod ${values.pod}: must be NAMESPACE/NAME or NAMESPACE/NAME/CONTAINER`);
  const direct = DIRECT_FLAGS.filter((flag) => values[flag] !== undefined);
  if (direct.length > 0) {
    if (container === undefined) throw new UsageError(`--${direct[0]}: --pod needs its container`);
    const pod = { namespace, pod: name, container };
    if (values.kubelet === undefined) return openRuntimeEndpoint(values, pod);
    if (direct.length > 1) throw new UsageError(`--kubelet and --${direct[1]}: only one server can be tried`);
    const spec = await serverSpecOf(values, "--kubelet", values.kubelet);
    return { endpoint: kubeletEndpoint(await openTarget(spec), pod) };
  }
  const target = await openTarget(await targetSpecOf(values));
  return { endpoint: apiServerEndpoint(target, { namespace, pod: name, container }) };
}

/**
 * A runtime's streaming URL works for one session, so the runtime creates a new one before each.
 * --streaming-url only names the server.
 */
async function openRuntimeEndpoint(
  values: Values,
  { namespace, pod, container }: { namespace: string; pod: string; container: string },
): Promise<OpenEndpoint> {
  const runtime = await openRuntime(values["runtime-endpoint"] ?? DEFAULT_RUNTIME_ENDPOINT);
  try {
    const { runtimeName, runtimeVersion } = await runtime.version();
    const sandbox = await findSandbox(runtime, { namespace, pod });
    const { id } = await findRunningContainer(runtime, sandbox, container);
    const textOf = (request: SessionRequest): Promise<string> => {
      if (request.kind === "port-forward") {
        const { legacyPort } = request;
        return runtime.portForwardUrl(sandbox.id, legacyPort === undefined ? [] : [legacyPort]);
      }
      const { kind, command, streams } = request;
      return kind === "exec" ? runtime.execUrl(id, command, streams) : runtime.attachUrl(id, streams);
    };
    const urlOf = async (request: SessionRequest): Promise<URL> => parseStreamingUrl(await textOf(request));
    const given = values["streaming-url"] ?? (await urlOf({ kind: "port-forward" })).href;
    const spec = await serverSpecOf(values, "--streaming-url", given);
    const target = await openTarget({ ...spec, url: new URL(given).origin });
    const name = `${runtimeName} ${runtimeVersion}, ${target.url.origin}`;
    return { endpoint: runtimeEndpoint(name, target, urlOf), close: () => runtime.close() };
  } catch (error) {
    runtime.close();
    throw error;
  }
}

/** The time between two progress lines without a terminal. */
const WAIT_LINE_MS = 15_000;

interface ConformanceView {
  update(report: CaseReport, done: number): void;
  /** The remaining cases run together and print nothing for up to this time. */
  wait(cases: number, longestMs: number): void;
  stop(): void;
}

/** Writes to stderr: on a terminal one line that is redrawn, elsewhere a line for each case. */
function openConformanceView(total: number): ConformanceView {
  const startMs = performance.now();
  let [done, failed, endsAtMs] = [0, 0, startMs];
  const secondsLeft = (): number => Math.max(0, Math.ceil((endsAtMs - performance.now()) / 1_000));
  if (!process.stderr.isTTY) {
    const left = (): void =>
      void process.stderr.write(
        `${done}/${total} ${total - done} cases wait, for up to ${secondsLeft()} s more\n`,
      );
    let timer: NodeJS.Timeout | undefined;
    return {
      update: (report, now) => {
        done = now;
        process.stderr.write(`${done}/${total} ${maskControls(caseLine(report))}\n`);
      },
      wait: (_cases, longestMs) => {
        endsAtMs = performance.now() + longestMs;
        left();
        timer = setInterval(left, WAIT_LINE_MS).unref();
      },
      stop: () => clearInterval(timer),
    };
  }
  const bar = new cliProgress.SingleBar({
    format: "{bar} {value}/{total}  {failed} failed  {id}{waits}",
    barsize: 20,
    stream: process.stderr,
    // The command itself handles Ctrl-C: it ends the run with a report.
    gracefulExit: false,
    hideCursor: true,
  });
  bar.start(total, 0, { id: "", failed, waits: "" });
  let timer: NodeJS.Timeout | undefined;
  return {
    update: ({ id, verdict }, now) => {
      done = now;
      if (verdict === "failed") failed += 1;
      bar.update(done, { id, failed });
    },
    wait: (_cases, longestMs) => {
      endsAtMs = performance.now() + longestMs;
      const show = (): void => bar.update(done, { id: "", waits: `silence, up to ${secondsLeft()} s more` });
      show();
      timer = setInterval(show, 1_000).unref();
    },
    stop: () => {
      clearInterval(timer);
      bar.stop();
    },
  };
}

/**
 * Tests an endpoint against the requirements of Kubernetes' streams. Exit code 1 if a case of
 * severity "must" failed.
 */
export async function run({ values }: Invocation<typeof command.flags>): Promise<number> {
  const cases = casesOf(values.only);
  if (values.list) {
    const [ignored] = (["pod", "json", "junit", "html", "baseline"] as const).filter(
      (name) => values[name] !== undefined,
    );
    if (ignored !== undefined)
      throw new UsageError(`--list runs no cases, so --${ignored} would have no effect`);
    for (const { id, severity, requirement } of cases)
      process.stdout.write(`${id}  ${severity}  ${requirement}\n`);
    return 0;
  }
  const settings = settingsOf(values);
  // Reads the baseline before the run, to report its faults at once.
  const baseline = await baselineOf(values.baseline);
  const { endpoint, close } = await openEndpoint(values);
  const interrupted = new AbortController();
  const view = openConformanceView(cases.length);
  const report = await withTerminationSignal((terminated) => {
    void terminated.then(() => interrupted.abort());
    return runConformance(endpoint, {
      cases,
      settings,
      signal: interrupted.signal,
      onWait: (count, longestMs) => view.wait(count, longestMs),
      onCase: (one: CaseReport, done: number) => view.update(one, done),
    });
  });
  view.stop();
  close?.();
  const comparison = baseline && compareWith(baseline, report);
  const text = textReport(report) + (comparison === undefined ? "" : `\n${comparisonText(comparison)}`);
  const isReportOnStdout = [values.json, values.junit, values.html].includes("-");
  const stream = isReportOnStdout ? process.stderr : process.stdout;
  stream.write(coloured(maskControls(text), stream));
  await write(values.json, () => `${quietJson(report, 1)}\n`);
  await write(values.junit, () => junitReport(report));
  await write(values.html, () => conformancePage(report, comparison));
  if (report.counts.passed === 0) return 1;
  const decisive = comparison?.broken ?? report.cases.filter(({ verdict }) => verdict === "failed");
  return decisive.some(({ severity }) => severity === "must") ? 1 : 0;
}

async function baselineOf(file: string | undefined): Promise<ConformanceReport | undefined> {
  if (file === undefined) return undefined;
  try {
    return parseReport((await readUpTo(file, undefined, true)).toString());
  } catch (error) {
    throw new UsageError(`--baseline ${file}: ${systemErrorReason(error)}`);
  }
}

function settingsOf(values: ValuesOf<typeof command.flags>): Partial<LabSettings> {
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
  if (unknown !== undefined) throw new UsageError(`--only ${unknown}: no case has this prefix; see --list`);
  return ALL_CASES.filter(({ id }) => only.some((prefix) => id.startsWith(prefix)));
}

async function write(file: string | undefined, text: () => string): Promise<void> {
  if (file === "-") process.stdout.write(text());
  else if (file !== undefined) await writeFile(file, text());
}
