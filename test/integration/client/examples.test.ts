import { execFile } from "node:child_process";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtProgram } from "../../support/built-program.ts";
import { type RunningDemo, startDemo } from "../../support/demo.ts";

let demo: RunningDemo;
beforeAll(async () => {
  demo = await startDemo();
});
afterAll(() => demo.stop());

function runExample(
  name: string,
  ...args: string[]
): Promise<{ code: number | string | null; stdout: string; stderr: string }> {
  builtProgram();
  const file = path.resolve(import.meta.dirname, "../../../docs/examples", name);
  const options = { env: { ...process.env, KUBECONFIG: demo.kubeconfig } };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [file, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, stdout, stderr }),
    );
    child.stdin?.end("input");
  });
}

describe("docs/examples, by the package's own name", () => {
  it("exec.mjs: output, exit code, and which leg failed", async () => {
    expect(await runExample("exec.mjs", "web", "sh", "-c", "cat; exit 3")).toEqual({
      code: 3,
      stdout: "input",
      stderr: "",
    });
    expect(await runExample("exec.mjs", "nope", "ls")).toMatchObject({
      code: 1,
      stderr: 'ConnectError (http): pods "nope" not found\n',
    });
  });

  it("forward.mjs: an HTTP answer", async () => {
    expect((await runExample("forward.mjs", "web-ws", "80")).stdout).toContain("Hello from pod web-ws");
  });
});
