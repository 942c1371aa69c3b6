// Builds dist and the workspaces' dist folders, each in a new folder that replaces the old one when
// it is finished. So a program that runs from dist misses no file, two builds at once do not
// disturb each other, and an interrupted build changes nothing.
//
//   node scripts/build.mjs                builds
//   node scripts/build.mjs --if-needed    builds unless dist is newer than its sources; without the compilers it says so and exits with 0
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { replaceFolder } from "./replace-folder.mjs";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const dist = path.join(root, "dist");
const program = "bin/sluice.cjs";
const TSC = "node_modules/typescript/bin/tsc";
/** The workspaces; each imports only those before it. */
const WORKSPACES = ["protocols", "packages/client", "packages/lab"];

function isUpToDate() {
  const built = [
    path.join(dist, program),
    ...WORKSPACES.map((workspace) => path.join(root, workspace, "dist")),
  ];
  return built.every((file) => existsSync(file)) && statSync(built[0]).mtimeMs > newestSourceMs();
}

/** Includes folders, because a removed file changes its folder. */
function newestSourceMs() {
  const files = ["src", "scripts", ...WORKSPACES].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true }).map((name) => path.join(folder, name)),
  );
  const sources = files.filter((file) => !/[\\/](dist|node_modules|LICENSE)([\\/]|$)|\.md$/.test(file));
  const all = [...sources, "package.json", "tsconfig.json", "tsconfig.build.json"];
  return Math.max(...all.map((file) => statSync(path.join(root, file)).mtimeMs));
}

/**
 * The compilers are development dependencies, and their native parts are optional packages for each
 * platform.
 */
async function areCompilersInstalled() {
  const { status } = spawnSync(process.execPath, [path.join(root, TSC), "--version"], { stdio: "ignore" });
  const rolldown = await import("rolldown").catch(() => undefined);
  return status === 0 && rolldown !== undefined;
}

function run(script, ...args) {
  const { status } = spawnSync(process.execPath, [path.join(root, script), ...args], {
    cwd: root,
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}

async function build() {
  removeAbandoned();
  const startedAt = new Date();
  const folder = `${dist}.${process.pid}`;
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));

  for (const workspace of WORKSPACES) buildWorkspace(workspace);
  run(TSC, "-p", "tsconfig.build.json", "--outDir", folder);
  const { licencesOf, writeBundle } = await import("./bundle.mjs");
  // Of the packages, it includes only yaml, which every client command loads and which comes in 70
  // files. npm installs the others.
  const packages = await writeBundle(path.join(folder, "bin"), (name) => name === "yaml");
  writeFileSync(path.join(folder, "bin/LICENSES"), licencesOf(packages));
  const { publishConfig } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
  for (const file of Object.values(publishConfig.bin))
    chmodSync(path.join(folder, path.relative("dist", file)), 0o755);
  run("scripts/build-man.mjs", folder);
  // A source that is written during this build must be newer than its result.
  utimesSync(path.join(folder, program), startedAt, startedAt);
  replaceFolder(dist, folder);
}

function buildWorkspace(workspace) {
  const target = path.join(root, workspace, "dist");
  const folder = `${target}.${process.pid}`;
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  run(TSC, "-p", path.join(workspace, "tsconfig.json"), "--outDir", folder);
  // tsc rewrites import extensions only in programs.
  for (const name of readdirSync(folder, { recursive: true }).filter((file) => file.endsWith(".d.ts"))) {
    const file = path.join(folder, name);
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace(/((?:from |import\()"\.[^"]*)\.ts"/g, '$1.js"'));
  }
  replaceFolder(target, folder);
  copyFileSync(path.join(root, "LICENSE"), path.join(root, workspace, "LICENSE"));
}

/** Removes folders that a killed build left behind. */
function removeAbandoned() {
  for (const parent of [root, ...WORKSPACES.map((workspace) => path.join(root, workspace))])
    for (const name of readdirSync(parent)) {
      const [, pid] = /^dist\.(\d+)/.exec(name) ?? [];
      if (pid !== undefined && !isRunning(Number(pid)))
        rmSync(path.join(parent, name), { recursive: true, force: true });
    }
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
}

const isNeeded = !process.argv.includes("--if-needed") || !isUpToDate();
if (!isNeeded) console.log("Nothing to build: dist is newer than its sources.");
else if (!process.argv.includes("--if-needed") || (await areCompilersInstalled())) await build();
else
  console.log(`Not built: the compilers are not installed (--omit=dev, --omit=optional or NODE_ENV=production leaves them out).
With them: npm ci --include=dev --include=optional`);
