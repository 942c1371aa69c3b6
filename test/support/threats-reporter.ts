import path from "node:path";
import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";
import { LONG_TESTS } from "./long-tests.ts";
import { readThreats, type ThreatTest } from "./threats.ts";

/** The projects of a complete run. Long tests and those with real parts count only if they ran. */
const PROJECTS = ["unit", "properties", "integration", "alone"];
const OTHER_PROJECTS = ["long", "real"];
/** In these tests a part may be missing. */
const REAL_TESTS = "test/real/";
const root = path.resolve(import.meta.dirname, "../..");

/**
 * Fails a run if a test that docs/threats.md names did not pass: it failed, was skipped, or does
 * not exist. A run of some files checks only those, and a run of some tests (`-t`) none.
 */
export default class ThreatsReporter implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  async onTestRunEnd(modules: readonly TestModule[]): Promise<void> {
    if (this.#vitest?.config.testNamePattern !== undefined) return;
    const testsOf = new Map(
      modules.map((module) => [nameOf(module.moduleId), [...module.children.allTests()]]),
    );
    const isWhole = await this.#isWhole(new Set(testsOf.keys()));
    const problems = readThreats().flatMap(({ name, tests }) =>
      tests
        .filter(({ file }) => testsOf.has(file) || (isWhole && !isElsewhere(file)))
        .map((test) => problemOf(test, testsOf.get(test.file)))
        .filter((problem) => problem !== undefined)
        .map((problem) => `  ${name} is not held off: ${problem}`),
    );
    if (problems.length === 0) return;
    console.error(["", "Threats of docs/threats.md", ...problems, ""].join("\n"));
    process.exitCode = 1;
  }

  /** True if every file that contains these tests has run. */
  async #isWhole(files: ReadonlySet<string>): Promise<boolean> {
    const all = (await this.#vitest?.globTestSpecifications()) ?? [];
    const wanted = all.filter(({ project }) => !OTHER_PROJECTS.includes(project.name));
    // Only the requested projects are listed.
    const areAllListed = PROJECTS.every((name) => wanted.some(({ project }) => project.name === name));
    return areAllListed && wanted.every(({ moduleId }) => files.has(nameOf(moduleId)));
  }
}

/**
 * Undefined if at least one test has this title and all of them passed; with real parts they may be
 * skipped, unless SLUICE_REQUIRE forbids it.
 */
export function problemOf(
  { file, title }: ThreatTest,
  tests: readonly Pick<TestCase, "fullName" | "result">[] | undefined,
): string | undefined {
  const titled = tests?.filter(({ fullName }) => fullName.includes(title)) ?? [];
  if (titled.length === 0) return `${file} has no test: ${title}`;
  const accepted = file.startsWith(REAL_TESTS) ? ["passed", "skipped"] : ["passed"];
  const other = titled.find((test) => !accepted.includes(test.result().state));
  return other && `${other.result().state} in ${file}: ${other.fullName}`;
}

function isElsewhere(file: string): boolean {
  return file.startsWith(REAL_TESTS) || LONG_TESTS.includes(file);
}

/** The path from the repository's root. */
function nameOf(moduleId: string): string {
  return path.relative(root, moduleId).split(path.sep).join("/");
}
