import type { Reporter, SerializedError, TestCase, TestModule, TestSuite } from "vitest/node";
import { type RealPart, realParts, stateOf } from "./real-parts.ts";

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

type Task = TestCase | TestModule | TestSuite;

/** Every test suite: its project, the command that runs it, and what it needs. */
const SUITES: readonly (readonly [project: string, command: string, needs: string])[] = [
  ["unit", "npm run unit", "Node.js alone; part of npm test"],
  ["properties", "npm test", "Node.js alone"],
  ["integration", "npm test", "Node.js alone; more with kubectl or redis"],
  ["alone", "npm test", "Node.js alone; a process for each file"],
  [
    "long",
    "npm run test:long",
    "Node.js alone, and minutes: worker processes, replicas, sweeps, kubectl if it is installed",
  ],
  [
    "real",
    "npm run test:real",
    "real parts, each if it is installed; Go builds some of them, the first time for 10 minutes",
  ],
  ["cluster", "npm run test:cluster", "root, containerd 2, and npm run build:cluster: 15 minutes, once"],
  ["fuzzing", "npm run fuzz TARGET SECONDS", "Node.js alone; npm test replays what it kept"],
];

/**
 * Ends a run with a table of what ran, why tests were skipped and which suites exist, so that a
 * green run cannot hide that no real part ran; and with a line of counts for programs. Comes after
 * vitest's own reporter.
 */
export default class ClosingTableReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const total = countsOf(tests, suitesOf(modules));
    total.failed += unhandledErrors.length;
    const ran = new Set(modules.map(({ project }) => project.name));
    const needed = realParts.filter((part) => ran.has("real") || tests.some((test) => needs(test, part)));
    const sections = [
      table(["What ran", "files", "passed", "failed", "skipped", "seconds, summed"], suiteRows(modules)),
      table(
        ["Real parts", "versions", "this run"],
        needed.map((part) => partRow(part, modules)),
      ),
      table(["Skipped", "because"], skipRows(tests)),
      table(
        ["What more there is", "command", "needs"],
        SUITES.filter(([project]) => !ran.has(project)),
      ),
    ];
    console.log(`\n${sections.filter((text) => text !== "").join("\n")}`);
    console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  }
}

function suiteRows(modules: readonly TestModule[]): string[][] {
  const rows: string[][] = [];
  for (const [name] of SUITES) {
    const own = modules.filter(({ project }) => project.name === name);
    if (own.length === 0) continue;
    const { passed, failed, skipped } = countsOf(
      own.flatMap((module) => [...module.children.allTests()]),
      suitesOf(own),
    );
    const seconds = own.reduce((sum, module) => sum + module.diagnostic().duration, 0) / 1_000;
    rows.push([name, ...[own.length, passed, failed, skipped].map(String), seconds.toFixed(0)]);
  }
  return rows;
}

function partRow(part: RealPart, modules: readonly TestModule[]): string[] {
  const { versions, missing } = stateOf(part);
  const tests = modules.flatMap((module) => [...module.children.allTests()]);
  const counts = countsOf(
    tests.filter((test) => needs(test, part)),
    suitesOf(modules).filter((suite) => needs(suite, part)),
  );
  return [part, versions.join(" ") || "-", outcomeOf(counts, missing)];
}

function outcomeOf({ passed, failed, skipped }: Counts, missing: string | undefined): string {
  if (passed + failed + skipped === 0) return missing ?? "no test of this run needs it";
  if (missing !== undefined) return failed > 0 ? `FAILED: ${missing}` : `${skipped} skipped: ${missing}`;
  return [`${passed} passed`, failed > 0 ? `${failed} FAILED` : "", skipped > 0 ? `${skipped} skipped` : ""]
    .filter(Boolean)
    .join(", ");
}

function skipRows(tests: readonly TestCase[]): string[][] {
  const counts = new Map<string, number>();
  for (const test of tests) {
    const result = test.result();
    if (result.state !== "skipped") continue;
    const missing = test.meta().realParts?.map((part) => stateOf(part).missing) ?? [];
    const reason = skipReason(
      test.fullName,
      result.note,
      missing.filter((text) => text !== undefined),
    );
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  return [...counts].map(([reason, count]) => [String(count), reason]);
}

/**
 * Why a test was skipped: its note, the part it lacks, or the text in brackets at the end of a name
 * above it.
 */
export function skipReason(fullName: string, note: string | undefined, missing: readonly string[]): string {
  if (note !== undefined) return note;
  if (missing.length > 0) return missing.join("; ");
  const names = fullName.split(" > ").map((name) => /\(([^()]+)\)$/.exec(name)?.[1]);
  return names.find((reason) => reason !== undefined) ?? "not chosen in this run";
}

function needs(task: Task, part: RealPart): boolean {
  return task.meta().realParts?.includes(part) ?? false;
}

function suitesOf(modules: readonly TestModule[]): (TestModule | TestSuite)[] {
  return modules.flatMap((module) => [module, ...module.children.allSuites()]);
}

/** A file that fails to load and a hook that fails skip their tests. Each counts as one failure. */
function countsOf(tests: readonly TestCase[], suites: readonly (TestModule | TestSuite)[]): Counts {
  const counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  for (const test of tests) {
    const { state } = test.result();
    // An interrupted run leaves tests pending: they neither passed nor were skipped.
    counts[state === "pending" ? "failed" : state] += 1;
  }
  counts.failed += suites.filter((suite) => suite.errors().length > 0).length;
  return counts;
}

/** An empty text if there are no rows. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return "";
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const text = lines.map((line, row) => {
    const cells = line.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    return `${row === 0 ? "" : "  "}${cells.join("  ")}`.trimEnd();
  });
  return `${text.join("\n")}\n`;
}
