import { readFileSync, symlinkSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { builtProgram } from "../support/built-program.ts";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import { describeReal, kubectls } from "../support/real-parts.ts";

describeReal("kubectl", "kubectl sluice", () => {
  let demo: RunningDemo;
  let runner: KubectlRunner;
  let env: Record<string, string>;
  beforeAll(async () => {
    const [newest] = kubectls().slice(-1);
    if (newest === undefined) expect.unreachable("there is a kubectl");
    demo = await startDemo();
    runner = new KubectlRunner(newest);
    // As npm links the programs of a package.
    const root = path.resolve(path.dirname(builtProgram()), "../..");
    const { publishConfig } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
    for (const [name, program] of Object.entries<string>(publishConfig.bin))
      symlinkSync(path.join(root, program), path.join(runner.folder, name));
    env = { PATH: `${runner.folder}:${process.env.PATH}`, KUBECONFIG: demo.kubeconfig };
  });
  afterAll(async () => {
    runner.remove();
    await demo.stop();
  });

  it("runs a command, with flags before and behind its name, and gives its exit code", async () => {
    const command = ["sh", "-c", "echo $0; exit 7", "hello"];
    for (const flags of [
      ["sluice", "-n", "default", "exec", "web", "--"],
      ["sluice", "exec", "web", "-n=default", "--"],
    ]) {
      expect(await runner.run([...flags, ...command], { env })).toEqual({
        exitCode: 7,
        stdout: "hello\n",
        stderr: "command terminated with exit code 7\n",
      });
    }
  });

  it("prints the manifests of the chart", async () => {
    const { exitCode, stdout } = await runner.run(["sluice", "install", "--dry-run"], { env });
    const manifests = new URL("../../deploy/kustomize/gateway/manifests.yaml", import.meta.url);
    const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
      version: string;
    };
    expect(readFileSync(manifests, "utf8")).toContain(`image: sluice:${version}\n`);
    expect([exitCode, stdout]).toEqual([0, readFileSync(manifests, "utf8")]);
  });

  it("shows its usage as it is typed", async () => {
    const help = await runner.run(["sluice", "exec", "--help"], { env });
    expect(help.stdout).toContain("\n  kubectl sluice exec (POD | TYPE/NAME)");
    expect(help.stdout).toContain("\n  kubectl sluice exec -i web -- tar xf - < files.tar\n");
    expect((await runner.run(["sluice", "exec", "--no-such"], { env })).stderr).toContain(
      "See 'kubectl sluice exec --help' for usage.",
    );
  });

  it.each([
    [["exec", "w"], "web\nweb-ws\n:4\n"],
    [["exec", "web", "-c", ""], "main\n:4\n"],
    [["load", "--direction", "u"], "upload\n:4\n"],
    [["serve", "--config", ""], ":0\n"],
  ])("completes %j", async (words, stdout) => {
    const result = await runner.run(["__complete", "sluice", ...words], { env });
    expect(result).toMatchObject({ exitCode: 0, stdout });
  });
});
