// Looks for inputs on which a reader of untrusted bytes fails. Findings, and inputs that reach new
// code, are kept in test/fuzz/corpus/TARGET; every test run replays them.
//
//   npm run fuzz TARGET SECONDS      TARGET: a name in test/support/fuzz/targets.ts
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const [target, seconds] = process.argv.slice(2);
if (!/^[a-z0-9]+$/.test(target ?? "") || !(Number(seconds) > 0)) {
  console.error("usage: npm run fuzz TARGET SECONDS; targets: test/support/fuzz/targets.ts");
  process.exit(2);
}
const vitest = [
  "node_modules/vitest/vitest.mjs",
  "run",
  "--project",
  "integration",
  "test/fuzz/corpus.test.ts",
];
const { status } = spawnSync(process.execPath, vitest, {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, SLUICE_FUZZ: `${target}:${seconds}` },
});
process.exit(status ?? 1);
