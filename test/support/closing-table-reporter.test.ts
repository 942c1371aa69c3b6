import { expect, it } from "vitest";
import { skipReason } from "./closing-table-reporter.ts";

it.each<[string, string, string | undefined, string[], string]>([
  ["its note", "matrix > kubectl 1.27", "SLUICE_FULL=1", ["kubectl is not installed"], "SLUICE_FULL=1"],
  ["what it misses", "a > b (c)", undefined, ["go is not installed", "d"], "go is not installed; d"],
  ["the end of a name above it", "nginx 1.2 (SLUICE_FULL=1) > echoes (all)", undefined, [], "SLUICE_FULL=1"],
  ["that it was not chosen", "a (b) c > d", undefined, [], "not chosen in this run"],
])("a skipped test's reason is %s", (_, fullName, note, missing, reason) => {
  expect(skipReason(fullName, note, missing)).toBe(reason);
});
