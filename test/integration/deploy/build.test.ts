import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, it } from "vitest";
import { builtProgram } from "../../support/built-program.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const run = promisify(execFile);
const folder = mkdtempSync(path.join(tmpdir(), "sluice-build-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("npm's prepare builds nothing when dist is newer than its sources", async () => {
  const program = builtProgram();
  const before = statSync(program);
  const { stdout } = await run(process.execPath, [path.join(root, "scripts/build.mjs"), "--if-needed"]);
  expect(stdout).toBe("Nothing to build: dist is newer than its sources.\n");
  const { ino, mtimeMs } = statSync(program);
  expect({ ino, mtimeMs }).toEqual({ ino: before.ino, mtimeMs: before.mtimeMs });
});

it("puts one finished folder in place when several builds end at once", async () => {
  const script = path.join(folder, "replace.mjs");
  const replace = path.join(root, "scripts/replace-folder.mjs");
  writeFileSync(
    script,
    `import { replaceFolder } from ${JSON.stringify(replace)}; replaceFolder(...process.argv.slice(2));`,
  );
  const target = path.join(folder, "dist");
  const builds = Array.from({ length: 6 }, (_, build) => `${target}.${build}`);
  for (const build of builds) {
    mkdirSync(path.join(build, "bin"), { recursive: true });
    writeFileSync(path.join(build, "bin/program"), build);
  }
  await Promise.all(builds.map((build) => run(process.execPath, [script, target, build])));
  expect(readdirSync(folder).toSorted()).toEqual(["dist", "replace.mjs"]);
  expect(builds).toContain(readFileSync(path.join(target, "bin/program"), "utf8"));
});
