import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { builtProgram } from "../../support/built-program.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const run = promisify(execFile);
const { version, ...manifest } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));

// A clone with its workspace of programs and without dependencies; `prepare` leaves a mark.
const clone = mkdtempSync(path.join(tmpdir(), "sluice-npx-"));
const env = { ...process.env, npm_config_cache: path.join(clone, "npm-cache"), npm_config_offline: "true" };
const mark = path.join(clone, "prepared");
const within = (folder: string) => ({ cwd: path.join(clone, folder), env });

beforeAll(async () => {
  const dist = path.dirname(path.dirname(builtProgram()));
  const {
    dependencies: _,
    optionalDependencies: __,
    peerDependencies: ___,
    devDependencies: ____,
    ...rest
  } = manifest;
  const scripts = { prepare: `node -e 'fs.writeFileSync("${mark}", "")'` };
  writeFileSync(path.join(clone, "package.json"), JSON.stringify({ ...rest, version, scripts }));
  cpSync(path.join(root, "packages/cli"), path.join(clone, "packages/cli"), { recursive: true });
  mkdirSync(path.join(clone, "packages/client"));
  const library = JSON.stringify({ name: "@sluice/client", version });
  writeFileSync(path.join(clone, "packages/client/package.json"), library);
  mkdirSync(path.join(clone, "docs/decisions"), { recursive: true });
  await run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund"], within("."));
  symlinkSync(dist, path.join(clone, "dist"));
});
afterAll(() => rmSync(clone, { recursive: true, force: true }));

it("npx runs what is built, in the clone and in its folders, several at once, and builds nothing", async () => {
  const calls = [
    [".", "sluice"],
    ["docs/decisions", "sluice"],
    ["packages/client", "sluice"],
    [".", "kubectl-sluice"],
  ] as const;
  const answers = await Promise.all(
    calls.map(([folder, program]) => run("npx", [program, "--version"], within(folder))),
  );
  for (const { stdout } of answers) expect(stdout).toBe(`sluice ${version}, Node ${process.version}\n`);
  expect(existsSync(mark)).toBe(false);
  // What npx installs is there; an interrupted installation stays broken.
  expect(existsSync(path.join(env.npm_config_cache, "_npx"))).toBe(false);
}, 60_000);

it("says how to build where nothing is built", async () => {
  rmSync(path.join(clone, "dist"));
  await expect(run("npx", ["sluice", "--version"], within("."))).rejects.toMatchObject({
    code: 1,
    stderr: "sluice is not built here; this builds it: npm ci --include=dev --include=optional\n",
  });
});
