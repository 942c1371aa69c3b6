import type { ConnectionOptions } from "node:tls";
import { notInstalled } from "../config/optional-package.ts";
import type { LatencySummary } from "./load-report.ts";

export interface HttpLoadPlan {
  /** The whole URL. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  /** Requests per second in all; 0 is as many as there can be. */
  readonly requestsPerSecond: number;
  readonly durationMs: number;
  readonly timeoutMs: number;
  readonly tls: ConnectionOptions;
}

export interface HttpLoadReport {
  readonly seconds: number;
  readonly requests: number;
  readonly perSecond: number;
  readonly bytes: number;
  readonly byStatus: Readonly<Record<string, number>>;
  readonly errors: number;
  readonly timeouts: number;
  readonly latency: Omit<LatencySummary, "count">;
}

/** What is used of autocannon, which has no types of its own. */
interface AutocannonResult {
  readonly duration: number;
  readonly errors: number;
  readonly timeouts: number;
  readonly requests: { readonly total: number; readonly average: number };
  readonly throughput: { readonly total: number };
  readonly latency: Readonly<Record<"p50" | "p90" | "p99" | "p99_9" | "max", number>>;
  readonly statusCodeStats?: Readonly<Record<string, { readonly count: number }>>;
}
type Autocannon = (options: object) => Promise<AutocannonResult> & { stop?: () => void };

/** Plain requests, through autocannon: what a listener answers without a session. `interrupted` ends it early. */
export async function runHttpLoad(
  plan: HttpLoadPlan,
  interrupted: Promise<unknown>,
): Promise<HttpLoadReport> {
  // biome-ignore lint/suspicious/noTsIgnore: there is a declaration file for some versions and none for others
  // @ts-ignore
  const loaded: unknown = await import("autocannon").catch(notInstalled("autocannon", "load of plain HTTP"));
  const { default: autocannon } = loaded as { default: Autocannon };
  const instance = autocannon({
    url: plan.url,
    headers: plan.headers,
    connections: plan.connections,
    duration: Math.max(1, Math.ceil(plan.durationMs / 1_000)),
    timeout: Math.max(1, Math.ceil(plan.timeoutMs / 1_000)),
    tlsOptions: plan.tls,
    // With a rate, autocannon corrects for requests that had to wait for others.
    ...(plan.requestsPerSecond > 0 && { overallRate: plan.requestsPerSecond }),
  });
  void interrupted.then(() => instance.stop?.());
  const result = await instance;
  const us = (ms: number): number => Math.round(ms * 1_000);
  const { p50, p90, p99, p99_9, max } = result.latency;
  return {
    seconds: result.duration,
    requests: result.requests.total,
    perSecond: result.requests.average,
    bytes: result.throughput.total,
    byStatus: Object.fromEntries(
      Object.entries(result.statusCodeStats ?? {}).map(([status, { count }]) => [status, count]),
    ),
    errors: result.errors,
    timeouts: result.timeouts,
    latency: { p50Us: us(p50), p90Us: us(p90), p99Us: us(p99), p999Us: us(p99_9), maxUs: us(max) },
  };
}
