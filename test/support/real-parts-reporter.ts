import type { Reporter, SerializedError, TestCase, TestModule, TestSuite } from "vitest/node";
import { type RealPart, realParts, stateOf } from "./real-parts.ts";

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/**
 * Closes a run with the table of real parts, so that "all green" cannot hide that nothing real ran, and with one plain line
 * of counts for tools that read logs. Goes after vitest's own reporter.
 */
export default class RealPartsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const total = countsOf(tests);
    // A file that fails to load and a hook that fails skip their tests, and an unhandled rejection belongs to none.
    const suites = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    total.failed += suites.filter((suite) => suite.errors().length > 0).length + unhandledErrors.length;
    const rows = realParts.map((part) => rowOf(part, tests, suites));
    console.log(["", "Real parts", ...formatTable(["part", "versions", "this run"], rows), ""].join("\n"));
    console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  }
}

function rowOf(
  part: RealPart,
  tests: readonly TestCase[],
  suites: readonly (TestModule | TestSuite)[],
): string[] {
  const { versions, missing } = stateOf(part);
  const needs = (task: TestCase | TestModule | TestSuite) => task.meta().realParts?.includes(part) ?? false;
  const counts = countsOf(tests.filter(needs));
  counts.failed += suites.filter((suite) => needs(suite) && suite.errors().length > 0).length;
  return [part, versions.join(" ") || "-", outcomeOf(counts, missing)];
}

function outcomeOf({ passed, failed, skipped }: Counts, missing: string | undefined): string {
  if (passed + failed + skipped === 0) return missing ?? "no test of this run needs it";
  if (missing !== undefined) return failed > 0 ? `FAILED: ${missing}` : `${skipped} skipped: ${missing}`;
  return [`${passed} passed`, failed > 0 ? `${failed} FAILED` : "", skipped > 0 ? `${skipped} skipped` : ""]
    .filter(Boolean)
    .join(", ");
}

function countsOf(tests: readonly TestCase[]): Counts {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  for (const test of tests) {
    const { state } = test.result();
    // A run that was interrupted leaves tests pending: they neither passed nor were chosen to be skipped.
    counts[state === "pending" ? "failed" : state] += 1;
  }
  return counts;
}

function formatTable(head: string[], rows: string[][]): string[] {
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines.map((line) =>
    `  ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}`.trimEnd(),
  );
}
