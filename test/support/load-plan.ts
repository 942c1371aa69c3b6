import { type HttpLoadReport, httpReportOf } from "../../packages/lab/src/load/http-load.ts";
import { LatencyCounts } from "../../packages/lab/src/load/latency-counts.ts";
import type { LoadPart, LoadPlan } from "../../packages/lab/src/load/load-plan.ts";
import { partsOf } from "../../packages/lab/src/load/load-report.ts";

/** Two exec sessions that echo. */
export function loadPlan(changed: Partial<LoadPlan> = {}): LoadPlan {
  return {
    ...{ kind: "exec", protocol: "ws-v5", direction: "echo", verification: "echo", path: "/exec", port: 0 },
    ...{ sessions: 2, arrivalsPerSecond: 0, count: 4, rampMs: 0, durationMs: 20_000 },
    ...{
      messages: 20,
      messageBytes: 1_000,
      messagesPerSecond: 0,
      messagesInFlight: 0,
      timeoutMs: 10_000,
      seed: 1,
    },
    ...changed,
  };
}

/** A report of plain requests that took these milliseconds, all answered with 200, in 2 s. */
export function httpReport(
  ms: readonly number[],
  part: LoadPart = { index: 0, of: 1 },
  startAtMs = Date.parse("2026-01-01T00:00:00Z"),
): HttpLoadReport {
  const plan = { connections: 4, requestsPerSecond: 0, durationMs: 2_000, timeoutMs: 1_000 };
  const counts = new LatencyCounts();
  for (const each of ms) counts.record(each);
  const report = httpReportOf(plan, partsOf(part), startAtMs, {
    ...{ wasInterrupted: false, seconds: 2, requests: ms.length, bytes: 10 * ms.length },
    ...{ byStatus: { 200: ms.length }, errors: 1, timeouts: 0, counts },
  });
  // The report as it is read from a file.
  return JSON.parse(JSON.stringify(report));
}
