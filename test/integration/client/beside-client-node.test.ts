import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../../support/demo.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const THEIRS = path.join(root, "test/fixtures/client-node");

let demo: RunningDemo;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-beside-"));
  demo = await startDemo();
});
afterAll(async () => {
  await demo.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Top-level statements behind the imports and the line of arguments. */
function statementsOf(text: string): number {
  const code = text.split("\n").filter((line) => !/^(?:import\b|\/\/|const \[.*process\.argv)/.test(line));
  return code.filter((line) => /;$/.test(line) && !/^\s/.test(line)).length;
}

async function runTheirs(name: string, ...args: string[]): Promise<{ code: number; stdout: string }> {
  const env = { ...process.env, KUBECONFIG: demo.kubeconfig, NODE_NO_WARNINGS: "1" };
  return promisify(execFile)(process.execPath, [path.join(THEIRS, name), ...args], { env }).then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout }),
  );
}

describe("the README's table beside @kubernetes/client-node", () => {
  it("their programs do what ours do", async () => {
    expect(await runTheirs("exec.mjs", "web", "main", "sh", "-c", "echo hi; exit 3")).toEqual({
      code: 3,
      stdout: "hi\n",
    });
    const [source, target] = [path.join(folder, "source"), path.join(folder, "target")];
    mkdirSync(source);
    mkdirSync(target);
    writeFileSync(path.join(source, "sent"), "copied");
    expect(await runTheirs("copy.mjs", "web", "main", source, target)).toMatchObject({ code: 0 });
    expect(readFileSync(path.join(target, "sent"), "utf8")).toBe("copied");
    expect((await runTheirs("forward.mjs", "web-ws", "80")).stdout).toContain("Hello from pod web-ws");
    expect((await runTheirs("logs.mjs", "web", "main", "1")).stdout.split("\n")).toHaveLength(2);
  });

  it.each([
    ["exec with exit code", "exec"],
    ["a folder into a pod", "copy"],
    ["forward a port", "forward"],
    ["print a log", "logs"],
  ])("%s has the counts of the programs", (row, name) => {
    const readme = readFileSync(path.join(root, "packages/client/README.md"), "utf8");
    const [, ours, theirs] = new RegExp(`^\\| ${row} \\| (\\d+) \\| (\\d+) \\|`, "m").exec(readme) ?? [];
    expect({ ours: Number(ours), theirs: Number(theirs) }).toEqual({
      ours: statementsOf(ourProgram(name, readme)),
      theirs: statementsOf(readFileSync(path.join(THEIRS, `${name}.mjs`), "utf8")),
    });
  });
});

/** exec is the README's own program, which has no handler of errors, as theirs. */
function ourProgram(name: string, readme: string): string {
  if (name === "exec") return /```js\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  const text = readFileSync(path.join(root, "packages/client/examples", `${name}.mjs`), "utf8");
  // Theirs copies one way.
  return name === "copy" ? text.replace(/^await copyFrom.*\n/m, "") : text;
}
