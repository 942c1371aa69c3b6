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
  /** What was observed where it failed, why it was skipped, or what was measured. */
  readonly note?: string;
  readonly durationMs: number;
}

/** What a run found; as JSON, the contract of `--json` and `--baseline`. */
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
