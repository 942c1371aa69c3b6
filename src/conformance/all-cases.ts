import { execCases } from "./cases/exec-cases.ts";
import { CASE_GROUPS, type ConformanceCase } from "./conformance-case.ts";

/** Every case, by group in the order of CASE_GROUPS. */
export const ALL_CASES: readonly ConformanceCase[] = [...execCases].toSorted(
  (one, other) => CASE_GROUPS.indexOf(one.group) - CASE_GROUPS.indexOf(other.group),
);
