import { appendFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Reporter, SerializedError, TestModule } from "vitest/node";

const root = path.resolve(import.meta.dirname, "../..");

/**
 * For `.ci/run`. Writes the files that failed, one a line, into the file that SLUICE_FAILED_FILES
 * names, to run them again; none if an error belongs to no file. Appends each failure to the file
 * that SLUICE_FAILURES names.
 */
export default class FailedFilesReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const { SLUICE_FAILED_FILES, SLUICE_FAILURES } = process.env;
    if (SLUICE_FAILURES !== undefined) appendFileSync(SLUICE_FAILURES, failures(modules, unhandledErrors));
    if (SLUICE_FAILED_FILES === undefined) return;
    const unhandled = unhandledErrors.map(fileOf);
    const failed = modules.filter((module) => !module.ok()).map(({ moduleId }) => moduleId);
    const files = unhandled.includes(undefined) ? [] : new Set([...failed, ...unhandled]);
    writeFileSync(SLUICE_FAILED_FILES, [...files].map((file) => `${relative(file ?? "")}\n`).join(""));
  }
}

/** Vitest names the file that was running when no test caught the error. */
function fileOf(error: SerializedError): string | undefined {
  return typeof error.VITEST_TEST_PATH === "string" ? error.VITEST_TEST_PATH : undefined;
}

function failures(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): string {
  const lines = unhandledErrors.map(
    (error) => `${relative(fileOf(error) ?? "no file")}: unhandled: ${first(error)}`,
  );
  for (const module of modules) {
    for (const error of module.errors()) lines.push(`${relative(module.moduleId)}: ${first(error)}`);
    for (const test of module.children.allTests("failed")) {
      lines.push(`${relative(module.moduleId)}: ${test.fullName}: ${first(test.result().errors?.[0])}`);
    }
  }
  // A repeated error adds nothing to its first line.
  return [...new Set(lines)].map((line) => `${line}\n`).join("");
}

const relative = (file: string): string => (path.isAbsolute(file) ? path.relative(root, file) : file);
const first = (error: { readonly message: string } | undefined): string =>
  error?.message.split("\n")[0] ?? "";
