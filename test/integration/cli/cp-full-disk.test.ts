import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../../support/demo.ts";
import { pathWithout } from "../../support/path-without.ts";
import { Sluice } from "../../support/sluice.ts";

const DISK = "size=2m";
const LARGER_BYTES = 80 * 1024 * 1024;

let demo: RunningDemo;
let sluice: Sluice;
let folder: string;
/** A disk of 2 MiB. The demo's containers see it, too. */
let disk: string;
let obstacle: string | undefined;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-full-"));
  disk = path.join(folder, "disk");
  mkdirSync(disk);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", DISK, "tmpfs", disk], { stdio: "pipe" });
  } catch (error) {
    obstacle = `a disk of its own cannot be mounted: ${(error as Error).message.split("\n")[1] ?? ""}`;
    return;
  }
  const programs = path.join(folder, "programs");
  mkdirSync(programs);
  // With openssl no file is hashed while it grows.
  demo = await startDemo(pathWithout("openssl", programs));
  sluice = new Sluice({ KUBECONFIG: demo.kubeconfig });
  writeFileSync(path.join(folder, "big"), randomBytes(6 * 1024 * 1024));
  writeFileSync(path.join(folder, "larger"), "");
  truncateSync(path.join(folder, "larger"), LARGER_BYTES);
  mkdirSync(path.join(folder, "tree"));
  for (let index = 0; index < 12; index += 1)
    writeFileSync(path.join(folder, `tree/${index}`), randomBytes(512 * 1024));
});
afterAll(async () => {
  await demo?.stop();
  if (obstacle === undefined) execFileSync("umount", [disk]);
  rmSync(folder, { recursive: true, force: true });
});
beforeEach((context) => {
  context.skip(obstacle !== undefined, obstacle);
});

describe("sluice cp and a disk that is full", () => {
  it.each<[string, (there: string) => string[], RegExp]>([
    ["a file, here", (there) => [`web:${there}/big`, disk], /^error: write: no space left on device\n$/],
    ["a folder, here", (there) => [`web:${there}/tree`, disk], /^error: write: no space left on device\n$/],
    [
      "a file, in the container",
      (there) => [`${there}/big`, `web:${disk}/big`],
      /^error: in the container, exit code 1: .*No space left on device\n$/,
    ],
    [
      "a file that is hashed while it grows, in the container",
      (there) => [`${there}/larger`, `web:${disk}/larger`],
      /^error: in the container, exit code 1: .*No space left on device\n$/,
    ],
    [
      "a folder, in the container",
      (there) => [`${there}/tree`, `web:${disk}/tree`],
      /^error: in the container, exit code \d+: [\s\S]*No space left on device/,
    ],
  ])("%s: exit code 1, the reason, and nothing is left", async (_what, ends, words) => {
    const result = await sluice.run(["cp", ...ends(folder)]);
    expect({ exitCode: result.exitCode, stdout: result.stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(result.stderr).toMatch(words);
    expect(readdirSync(disk)).toEqual([]);
    // There is room again, and nothing of before is in the way.
    writeFileSync(path.join(folder, "small"), "small");
    expect(await sluice.run(["cp", path.join(folder, "small"), `web:${disk}/small`])).toMatchObject({
      exitCode: 0,
    });
    expect(readdirSync(disk)).toEqual(["small"]);
    rmSync(path.join(disk, "small"));
  });
});
