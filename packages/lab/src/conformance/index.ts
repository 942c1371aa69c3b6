// packages/lab/conformance: cases that test whether an endpoint carries Kubernetes' streams
// correctly, their runner and reports

export { type Advice, adviceFor } from "./advice.ts";
export { ALL_CASES } from "./all-cases.ts";
export { CASE_GROUPS, type ConformanceCase } from "./conformance-case.ts";
export type { CaseReport, ConformanceReport } from "./conformance-report.ts";
export {
  type BaselineComparison,
  compareWith,
  comparisonText,
  junitReport,
  parseReport,
} from "./conformance-report.ts";
export {
  apiServerEndpoint,
  type Endpoint,
  kubeletEndpoint,
  runtimeEndpoint,
  type SessionRequest,
} from "./endpoint.ts";
export { defaultLabSettings, type LabSettings, quickLabSettings } from "./lab-settings.ts";
export { caseLine, conformancePage, textReport } from "./report-texts.ts";
export { runConformance } from "./run-cases.ts";
