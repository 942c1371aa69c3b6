import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { homedir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { eventually } from "../support/eventually.ts";
import { collect } from "../support/kubectl.ts";

const { SLUICE_PARTS_DIR: parts = path.join(homedir(), ".cache/sluice/real-parts") } = process.env;
const stern = path.join(parts, "go/stern");
const { status, stdout: said } = spawnSync(stern, ["--version"], { encoding: "utf8" });
const isMissing = status !== 0;
const version = isMissing
  ? "(needs go install github.com/stern/stern@v1.33.0)"
  : /version: (\S+)/.exec(said)?.[1];

describe.skipIf(isMissing)(`stern ${version}`, () => {
  let demo: RunningDemo;
  beforeAll(async () => {
    demo = await startDemo();
  }, 60_000);
  afterAll(() => demo?.stop());
  const flags = () => ["--kubeconfig", demo.kubeconfig, "--color", "never"];

  it("prints the logs of all pods", async () => {
    const { stdout } = await promisify(execFile)(stern, [...flags(), "--no-follow", "."], {
      timeout: 50_000,
    });
    const lines = ["web main container main is running", "web-ws main container main is running"];
    expect(stdout.trim().split("\n").toSorted()).toEqual(lines);
  }, 60_000);

  it.each(["web", "web-ws"])("follows the log of %s", async (pod) => {
    const following = spawn(stern, [...flags(), `^${pod}$`], { stdio: ["ignore", "pipe", "inherit"] });
    const closed = once(following, "close");
    const stdout = collect(following.stdout);
    const attached = spawn("kubectl", ["--kubeconfig", demo.kubeconfig, "attach", "-i", pod], {
      stdio: ["pipe", "ignore", "ignore"],
    });
    const left = once(attached, "close");
    try {
      await eventually("stern follows", () => stdout().includes("is running"), { timeoutMs: 30_000 });
      attached.stdin.write("a line for stern\n");
      const isThere = () => stdout().includes(`${pod} main a line for stern\n`);
      await eventually("the line is there", isThere, { timeoutMs: 30_000 });
    } finally {
      attached.kill();
      following.kill();
      await Promise.all([closed, left]);
    }
  }, 90_000);
});
