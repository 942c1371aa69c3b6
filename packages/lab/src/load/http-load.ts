import type { ConnectionOptions } from "node:tls";
import { notInstalled } from "@sluice/client/internal/config/optional-package";
import { SLUICE_VERSION } from "@sluice/client/internal/config/version";
import { LatencyCounts } from "./latency-counts.ts";
import { type LoadPart, shareOf } from "./load-plan.ts";
import { type JudgedThreshold, type LoadReport, partsOf, REPORT_FORMAT, summaryOf } from "./load-report.ts";
import type { IntervalLatency } from "./recorder.ts";

export interface HttpLoadPlan {
  /** The whole URL. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  /** Total requests per second; 0 means as many as possible. */
  readonly requestsPerSecond: number;
  readonly durationMs: number;
  readonly timeoutMs: number;
  readonly tls: ConnectionOptions;
}

interface HttpRunOptions {
  readonly part: LoadPart;
  /** Like `RunOptions.startAtMs`. */
  readonly startAtMs?: number | undefined;
  /** Resolves when the run should end early. */
  readonly interrupted: Promise<unknown>;
}

/** The part of autocannon's result that is used here; autocannon has no types. */
interface AutocannonResult {
  readonly duration: number;
  readonly errors: number;
  readonly timeouts: number;
  readonly requests: { readonly total: number };
  readonly throughput: { readonly total: number };
  readonly statusCodeStats?: Readonly<Record<string, { readonly count: number }>>;
}
interface AutocannonRun extends Promise<AutocannonResult> {
  stop?(): void;
  on(
    event: "response",
    listener: (...of: [client: unknown, status: number, bytes: number, ms: number]) => void,
  ): void;
}
type Autocannon = (options: object) => AutocannonRun;

/** Sends plain requests through autocannon, to load a listener without sessions. */
export async function runHttpLoad(
  plan: HttpLoadPlan,
  { part, startAtMs = 0, interrupted }: HttpRunOptions,
): Promise<HttpLoadReport> {
  // biome-ignore lint/suspicious/noTsIgnore: there is a declaration file for some versions and none for others
  // @ts-ignore
  const loaded: unknown = await import("autocannon").catch(notInstalled("autocannon", "load of plain HTTP"));
  const { default: autocannon } = loaded as { default: Autocannon };
  let wasInterrupted = false;
  const stopped = interrupted.then(() => {
    wasInterrupted = true;
  });
  await untilTime(startAtMs, stopped);
  const startedAtMs = Date.now();
  const counts = new LatencyCounts();
  const report = (result: AutocannonResult | undefined): HttpLoadReport =>
    httpReportOf(plan, partsOf(part), startedAtMs, {
      wasInterrupted,
      seconds: result?.duration ?? 0,
      requests: result?.requests.total ?? 0,
      bytes: result?.throughput.total ?? 0,
      byStatus: Object.fromEntries(
        Object.entries(result?.statusCodeStats ?? {}).map(([status, { count }]) => [status, count]),
      ),
      errors: result?.errors ?? 0,
      timeouts: result?.timeouts ?? 0,
      counts,
    });
  if (wasInterrupted) return report(undefined);
  const share = { index: part.index, processes: part.of };
  const connections = shareOf(plan.connections, share);
  // autocannon cannot divide a request.
  const { requestsPerSecond } = plan;
  const perSecond = part.of === 1 ? requestsPerSecond : shareOf(Math.round(requestsPerSecond), share);
  const run = autocannon({
    url: plan.url,
    headers: plan.headers,
    connections,
    duration: Math.max(1, Math.ceil(plan.durationMs / 1_000)),
    timeout: Math.max(1, Math.ceil(plan.timeoutMs / 1_000)),
    tlsOptions: plan.tls,
    ...(perSecond > 0 && { overallRate: perSecond }),
  });
  const expectedMs = perSecond > 0 ? (Math.min(connections, perSecond) * 1_000) / perSecond : 0;
  run.on("response", (_client, _status, _bytes, ms) => counts.recordExpected(ms, expectedMs));
  void stopped.then(() => run.stop?.());
  return report(await run);
}

async function untilTime(atMs: number, stopped: Promise<unknown>): Promise<void> {
  const waitMs = atMs - Date.now();
  if (waitMs <= 0) return;
  let timer: NodeJS.Timeout | undefined;
  const due = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, waitMs);
  });
  await Promise.race([due, stopped]);
  clearTimeout(timer);
}

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
  readonly parts: LoadReport["parts"];
  readonly startedAt: string;
  readonly seconds: number;
  readonly wasInterrupted: boolean;
  readonly requests: number;
  readonly perSecond: number;
  readonly bytes: number;
  readonly byStatus: Readonly<Record<string, number>>;
  readonly errors: number;
  readonly timeouts: number;
  readonly latency: ReturnType<typeof summaryOf>;
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
  parts: LoadReport["parts"],
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
