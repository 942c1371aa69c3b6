import {
  duration,
  type HttpLoadPlan,
  type HttpLoadReport,
  type JudgedThreshold,
  size,
  thresholdLines,
} from "../load/index.ts";
import type { LoadValues } from "./commands/load.ts";
import { openTarget, type TargetSpec, tlsConnectOptions } from "./load-target.ts";
import { UsageError } from "./usage-error.ts";

const MAX_CONNECTIONS = 100_000;

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
  if (values.html !== undefined) throw new UsageError("--html is for sessions");
  // autocannon's latencies cannot be added up.
  if (values.part !== undefined) throw new UsageError("--part is for sessions");
  if (values["start-at"] !== undefined) throw new UsageError("--start-at is for sessions");
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

export function httpSummary(report: HttpLoadReport, thresholds: readonly JudgedThreshold[]): string {
  const { seconds, requests, perSecond, bytes, byStatus, errors, timeouts, latency } = report;
  const statuses = Object.entries(byStatus).map(([status, times]) => `${status}: ${times}`);
  const { p50Us, p90Us, p99Us, p999Us, maxUs } = latency;
  // autocannon counts whole milliseconds.
  const time = (us: number): string => (us === 0 ? "< 1 ms" : duration(us));
  return `ran ${seconds} s
requests   ${requests} (${perSecond.toFixed(0)}/s), ${size(bytes)}
answers    ${statuses.join(", ") || "none"}
errors     ${errors}, of them time-outs ${timeouts}
latency    p50 ${time(p50Us)}  p90 ${time(p90Us)}  p99 ${time(p99Us)}  p99.9 ${time(p999Us)}  max ${time(maxUs)}
${thresholdLines(thresholds).join("\n")}`;
}
