import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtProgram } from "../../support/built-program.ts";
import { type RunningDemo, startDemo } from "../../support/demo.ts";

const EXAMPLES = path.resolve(import.meta.dirname, "../../../packages/client/examples");

let demo: RunningDemo;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-examples-"));
  demo = await startDemo();
});
afterAll(async () => {
  await demo.stop();
  rmSync(folder, { recursive: true, force: true });
});

function runExample(
  name: string,
  ...args: string[]
): Promise<{ code: number | string | null; stdout: string; stderr: string }> {
  builtProgram();
  const options = { env: { ...process.env, KUBECONFIG: demo.kubeconfig } };
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [path.join(EXAMPLES, name), ...args],
      options,
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
    child.stdin?.end("input");
  });
}

describe("the examples of @sluice/client, by the package's own name", () => {
  it("are all here", () => {
    expect(readdirSync(EXAMPLES).toSorted()).toEqual([
      "browser.mjs",
      "copy.mjs",
      "exec.mjs",
      "forward.mjs",
      "logs.mjs",
    ]);
  });

  it("exec.mjs: output, exit code, and which leg failed", async () => {
    const command = ["sh", "-c", "cat; exit 3"];
    expect(await runExample("exec.mjs", demo.kubeconfig, "web", "main", ...command)).toEqual({
      code: 3,
      stdout: "input",
      stderr: "",
    });
    expect(await runExample("exec.mjs", demo.kubeconfig, "nope", "main", "ls")).toMatchObject({
      code: 1,
      stderr: 'ConnectError (http): pods "nope" not found\n',
    });
  });

  it("copy.mjs: there and back", async () => {
    const [local, remote, copy] = ["local", "remote", "copy"].map((name) => path.join(folder, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(local, "copied");
    expect(await runExample("copy.mjs", "web", local, remote, copy)).toEqual({
      code: 0,
      stdout: "",
      stderr: "",
    });
    expect(readFileSync(copy, "utf8")).toBe("copied");
  });

  it("forward.mjs: an HTTP answer", async () => {
    expect((await runExample("forward.mjs", "web-ws", "80")).stdout).toContain("Hello from pod web-ws");
  });

  it("logs.mjs: the last line", async () => {
    const { code, stdout, stderr } = await runExample("logs.mjs", "web", "1");
    expect({ code, stderr, lines: stdout.split("\n").length }).toEqual({ code: 0, stderr: "", lines: 2 });
  });
});
