// Runs the lint rules that need types (.oxlintrc.json). The lockfile has the linter's native programs for Linux; elsewhere CI alone runs them.
import { spawnSync } from "node:child_process";

if (process.platform !== "linux") {
  console.log(`SKIPPED: the type-aware linter is not installed on ${process.platform}`);
} else {
  const { status } = spawnSync("npx", ["oxlint", "--deny-warnings"], { stdio: "inherit" });
  process.exitCode = status ?? 1;
}
