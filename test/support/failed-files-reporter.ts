import { writeFileSync } from "node:fs";
import path from "node:path";
import type { Reporter, SerializedError, TestModule } from "vitest/node";

const root = path.resolve(import.meta.dirname, "../..");

/**
 * Writes the files that failed, a line each, into the file that SLUICE_FAILED_FILES names: `.ci/run` runs them again. None where an error
 * belongs to no file, since no run of some files can answer for it.
 */
export default class FailedFilesReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const file = process.env.SLUICE_FAILED_FILES;
    if (file === undefined || unhandledErrors.length > 0) return;
    const failed = modules.filter((module) => !module.ok());
    writeFileSync(file, failed.map(({ moduleId }) => `${path.relative(root, moduleId)}\n`).join(""));
  }
}
