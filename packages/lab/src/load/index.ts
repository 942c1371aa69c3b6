// packages/lab/load: the load generator: plans, seeded streams, sessions, processes, reports

export { Generator } from "./generator.ts";
export { type RunOptions, runInProcesses, serveGenerator } from "./generator-processes.ts";
export { escapeHtml, htmlPage, htmlReport, readPlots } from "./html-report.ts";
export type { HttpLoadReport } from "./http-load.ts";
export { type HttpLoadPlan, runHttpLoad } from "./http-load.ts";
export {
  canEndInput,
  type LoadDirection,
  type LoadKind,
  type LoadPart,
  type LoadPlan,
  type LoadProtocol,
  PROTOCOLS_OF,
  type Verification,
} from "./load-plan.ts";
export { type JudgedThreshold, LoadCollector, type LoadReport } from "./load-report.ts";
export {
  mergeHttpReports,
  mergeReports,
  missingParts,
  type NamedReport,
  readReports,
} from "./read-reports.ts";
export { LINE_BYTES, LineSequence, SeededStream } from "./seeded-stream.ts";
export { duration, partLines, size, summaryText, thresholdLines } from "./summary-text.ts";
export {
  HTTP_METRICS,
  judge,
  judgesFailures,
  type Metrics,
  parseThreshold,
  SESSION_METRICS,
  type Threshold,
} from "./thresholds.ts";
