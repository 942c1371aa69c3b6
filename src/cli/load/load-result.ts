import { writeFile } from "node:fs/promises";
import type { ConnectionOptions } from "node:tls";
import { readUpTo } from "@sluice/client/internal/config/named-file-text";
import { systemErrorReason, systemErrorText } from "@sluice/client/internal/config/system-error";
import { loadKubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import type { UpstreamTlsOptions } from "@sluice/client/internal/net/tls";
import { htmlReport, readPlots } from "@sluice/lab/load/html-report";
import type { HttpLoadPlan, HttpLoadReport } from "@sluice/lab/load/http-load";
import type { JudgedThreshold, LoadReport } from "@sluice/lab/load/load-report";
import {
  mergeHttpReports,
  mergeReports,
  missingParts,
  type NamedReport,
  readReports,
} from "@sluice/lab/load/read-reports";
import { duration, partLines, size, summaryText, thresholdLines } from "@sluice/lab/load/summary-text";
import {
  HTTP_METRICS,
  judge,
  judgesFailures,
  type Metrics,
  parseThreshold,
  SESSION_METRICS,
  type Threshold,
} from "@sluice/lab/load/thresholds";
import { maskControls, quietJson } from "../../observability/mask-controls.ts";
import { UsageError } from "../command.ts";
import type { LoadValues } from "../commands/load.ts";
import { coloured } from "../print-text.ts";
import { openTarget, type TargetSpec } from "./load-target.ts";

const MAX_CONNECTIONS = 100_000;
const HTML_REFUSED = "--html is for sessions";

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
  const stream = isFileShown ? process.stderr : process.stdout;
  stream.write(coloured(maskControls(summaryText(report)), stream));
  await writeReport(json, () => quietJson(report));
  await writeReport(html, () => htmlReport(report));
  return exitCodeOf(report.sessions, thresholds, report.thresholds);
}

/** `file`: `-` is standard output. */
async function writeReport(file: string | undefined, text: () => string | Promise<string>): Promise<void> {
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

/** Throws UsageError. */
export async function httpPlanOf(
  values: LoadValues,
  [path, ...rest]: readonly string[],
  spec: TargetSpec,
): Promise<HttpLoadPlan> {
  if (path === undefined || rest.length > 0) throw new UsageError("http takes one PATH");
  if (!path.startsWith("/")) throw new UsageError(`http ${path}: a path starts with "/"`);
  if (values.sessions > MAX_CONNECTIONS) {
    throw new UsageError(`--sessions ${values.sessions}: http takes at most ${MAX_CONNECTIONS}`);
  }
  if (values.html !== undefined) throw new UsageError(HTML_REFUSED);
  const shares = values.part?.of ?? 1;
  if (values.sessions < shares)
    throw new UsageError(`--sessions must be ${shares} or more for ${shares} parts`);
  const rate = values["arrival-rate"];
  if (rate > 0 && rate < shares)
    throw new UsageError(`--arrival-rate must be ${shares} or more for ${shares} parts`);
  const target = await openTarget(spec);
  return {
    url: target.url.origin + target.pathOf(path),
    headers: Object.fromEntries(await target.headers()),
    connections: values.sessions,
    requestsPerSecond: values["arrival-rate"],
    durationMs: values.duration,
    timeoutMs: values.timeout,
    tls: await tlsConnectOptions(spec),
  };
}

/** Does the same as `publish`, for plain requests. */
export async function publishHttp(
  report: HttpLoadReport,
  thresholds: readonly Threshold<HttpLoadReport>[],
  { json, html }: Pick<LoadValues, "json" | "html">,
): Promise<number> {
  if (html !== undefined) throw new UsageError(HTML_REFUSED);
  const judged = judge(report, thresholds);
  const stream = json === "-" ? process.stderr : process.stdout;
  stream.write(coloured(httpSummary(report, judged), stream));
  await writeReport(json, () => quietJson({ ...report, thresholds: judged }));
  const { requests, errors, timeouts } = report;
  return exitCodeOf({ finished: requests, failed: errors + timeouts }, thresholds, judged);
}

function httpSummary(report: HttpLoadReport, thresholds: readonly JudgedThreshold[]): string {
  const { seconds, wasInterrupted, requests, perSecond, bytes, byStatus, errors, timeouts, latency } = report;
  const statuses = Object.entries(byStatus).map(([status, times]) => `${status}: ${times}`);
  const { p50Us, p90Us, p99Us, p999Us, maxUs } = latency;
  return `${[`${wasInterrupted ? "interrupted after" : "ran"} ${seconds} s`, ...partLines(report)].join("\n")}
requests   ${requests} (${perSecond.toFixed(0)}/s), ${size(bytes)}
answers    ${statuses.join(", ") || "none"}
errors     ${errors}, of them time-outs ${timeouts}
latency    p50 ${duration(p50Us)}  p90 ${duration(p90Us)}  p99 ${duration(p99Us)}  p99.9 ${duration(p999Us)}  max ${duration(maxUs)}
${thresholdLines(thresholds).join("\n")}`;
}

/**
 * Bytes of a file of reports for `sluice load merge`: some 300 parts of ten minutes each. Past it:
 * exit code 2.
 */
const MAX_FILE_BYTES = 256 * 1024 * 1024;

/** Merges the reports of parts that ran side by side. Throws UsageError, naming files. */
export async function runMerge(values: LoadValues, files: readonly string[]): Promise<number> {
  const named: NamedReport[] = [];
  for (const file of files) named.push(...(await readNamed(file)));
  const [first, ...others] = named;
  if (first === undefined) throw new UsageError("merge takes one FILE or more");
  return first.report.kind === "HttpLoadReport"
    ? await mergeHttp([first as HttpNamed, ...sameKind<HttpNamed>(first, others)], values)
    : await mergeSessions([first as SessionsNamed, ...sameKind<SessionsNamed>(first, others)], values);
}

type HttpNamed = NamedReport<HttpLoadReport>;
type SessionsNamed = NamedReport<LoadReport>;

async function mergeSessions(
  reports: readonly [SessionsNamed, ...SessionsNamed[]],
  values: LoadValues,
): Promise<number> {
  const thresholds = thresholdsOf(values, SESSION_METRICS);
  if (values.html !== undefined) await readPlots();
  const merged = refusing(() => mergeReports(reports));
  return verdict(merged, await publish(merged, thresholds, values));
}

async function mergeHttp(reports: readonly [HttpNamed, ...HttpNamed[]], values: LoadValues): Promise<number> {
  const thresholds = thresholdsOf(values, HTTP_METRICS);
  const merged = refusing(() => mergeHttpReports(reports));
  return verdict(merged, await publishHttp(merged, thresholds, values));
}

/**
 * The exit code. It is 1 if parts of the report are missing, because then nothing can be judged.
 */
function verdict(merged: LoadReport | HttpLoadReport, code: number): number {
  return missingParts(merged).length > 0 ? 1 : code;
}

function sameKind<N extends NamedReport>(first: NamedReport, others: readonly NamedReport[]): N[] {
  const other = others.find(({ report }) => report.kind !== first.report.kind);
  if (other === undefined) return others as N[];
  throw new UsageError(
    `${other.name}: it is a ${other.report.kind}, but ${first.name} is a ${first.report.kind}`,
  );
}

function refusing<T>(merge: () => T): T {
  try {
    return merge();
  } catch (error) {
    throw new UsageError(systemErrorText(error));
  }
}

async function readNamed(file: string): Promise<NamedReport[]> {
  const name = file === "-" ? "standard input" : file;
  try {
    const reports = readReports(
      file === "-" ? await readInput() : (await readUpTo(file, MAX_FILE_BYTES, true)).toString(),
    );
    return reports.map((report, index) => ({
      name: reports.length === 1 ? name : `${name}, report ${index + 1}`,
      report,
    }));
  } catch (error) {
    throw new UsageError(`${name}: ${systemErrorReason(error)}`);
  }
}

async function readInput(): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of process.stdin as AsyncIterable<Buffer>) {
    bytes += part.byteLength;
    if (bytes > MAX_FILE_BYTES) throw new RangeError(`it has more than ${MAX_FILE_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

/** The TLS material for another HTTP client, as options of `tls.connect`. */
async function tlsConnectOptions(spec: TargetSpec): Promise<ConnectionOptions> {
  const tls = spec.type === "server" ? spec.tls : (await loadKubeconfig(spec.file, spec.context)).tls;
  const { ca, certificate, key, insecureSkipVerify, ...rest }: UpstreamTlsOptions = tls;
  return {
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(key !== undefined && { key }),
    ...(rest.serverName !== undefined && { servername: rest.serverName }),
    rejectUnauthorized: insecureSkipVerify !== true,
  };
}
