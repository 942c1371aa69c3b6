// Times the way from a machine with Node, Go and the packages of .ci/run to tests on a real
// Kubernetes: a clone, npm ci and build:cluster with empty caches, and one test file. Writes
// docs/evidence/bare-machine.md. Takes half an hour on two free cores, and 10 GB below TMPDIR,
// which it removes.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), "sluice-bare-machine-"));
const clone = path.join(folder, "clone");
const env = {
  ...process.env,
  npm_config_cache: path.join(folder, "npm"),
  GOCACHE: path.join(folder, "go-build"),
  GOMODCACHE: path.join(folder, "go-mod"),
  GOFLAGS: "-modcacherw",
  SLUICE_CLUSTER_DIR: path.join(folder, "cluster"),
};
const rows = [];
const loadBefore = loadavg()[0];

/** Returns the command's output. Ends the whole run if the command fails. */
function step(name, command, args, cwd = clone) {
  const startMs = performance.now();
  const { status, stdout } = spawnSync(command, args, {
    cwd,
    env,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    stdio: ["ignore", "pipe", "inherit"],
  });
  process.stdout.write(stdout);
  if (status !== 0) throw new Error(`${name} ended with ${status}`);
  rows.push([name, (performance.now() - startMs) / 1_000]);
  return stdout;
}

try {
  step("`git clone`", "git", ["clone", "--quiet", root, clone], folder);
  step("`npm ci`", "npm", ["ci", "--no-audit", "--no-fund"]);
  const built = step("`npm run build:cluster`", "npm", ["run", "build:cluster"]);
  for (const [, program, seconds] of built.matchAll(/^cluster: (\S+ \S+) built in ([\d.]+) s$/gm))
    rows.push([`- ${program}`, Number(seconds)]);
  const test = "test/cluster/validation";
  const tested = step(`\`npm run test:cluster -- ${test}\``, "npm", ["run", "test:cluster", "--", test]);
  const ready = /^cluster: (Kubernetes \S+) is ready after ([\d.]+) s$/m.exec(tested);
  if (ready === null) throw new Error("the tests started no cluster");
  rows.push([`- ${ready[1]} is ready`, Number(ready[2])]);
  writeFileSync(path.join(root, "docs/evidence/bare-machine.md"), documentText());
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function documentText() {
  const total = rows.filter(([name]) => !name.startsWith("-")).reduce((sum, [, seconds]) => sum + seconds, 0);
  const lines = rows.map(([name, seconds]) => `| ${name} | ${seconds.toFixed(0)} s |`);
  const [before, after] = [loadBefore, loadavg()[0]].map((load) => load.toFixed(1));
  return `# From a bare machine to a real Kubernetes

A fresh clone builds and tests a real Kubernetes in ${(total / 60).toFixed(0)} minutes, with empty caches of npm and Go. ${cpus().length} cores of
${cpus()[0]?.model ?? "an unknown kind"}, Node ${process.version.slice(1)}, Go and the packages that \`.ci/run\` installs. The load average was
${before} at the start and ${after} at the end; above ${cpus().length}, other programs slowed the run. Lines with a dash are parts of
the line above; programs of one module share compiled code. Written by
\`node scripts/time-bare-machine.mjs\`.

| step | time |
|---|---|
${lines.join("\n")}
| in total | ${(total / 60).toFixed(0)} min |
`;
}
