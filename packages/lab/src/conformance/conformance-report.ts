import type { CaseGroup, Severity } from "./conformance-case.ts";
import type { EndpointProfile } from "./endpoint.ts";

export type Verdict = "passed" | "failed" | "skipped";

export interface CaseReport {
  readonly id: string;
  readonly group: CaseGroup;
  readonly requirement: string;
  readonly why: string;
  readonly source: string;
  readonly severity: Severity;
  readonly verdict: Verdict;
  /** The observation of a failed case, the reason for skipping, or a measurement. */
  readonly note?: string;
  readonly durationMs: number;
}

/** The result of a run. Its JSON is the contract of `--json` and `--baseline`. */
export interface ConformanceReport {
  readonly version: 1;
  readonly endpoint: string;
  readonly profile: EndpointProfile;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly durationMs: number;
  readonly counts: Readonly<Record<Verdict, number>>;
  readonly cases: readonly CaseReport[];
}
