// src/conformance: cases that try whether an endpoint carries Kubernetes' streams right; their runner and reports

export { ALL_CASES } from "./all-cases.ts";
export { CASE_GROUPS, type ConformanceCase } from "./conformance-case.ts";
export { type CaseReport, type ConformanceReport, hasFailed } from "./conformance-report.ts";
export { apiServerEndpoint, type Endpoint, kubeletEndpoint } from "./endpoint.ts";
export { defaultLabSettings, type LabSettings } from "./lab-settings.ts";
export { runConformance } from "./run-cases.ts";
export { caseLine, textReport } from "./text-report.ts";
