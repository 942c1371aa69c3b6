import type { ChildProcess } from "node:child_process";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { eventually } from "../support/eventually.ts";
import { collect, KubectlRunner } from "../support/kubectl.ts";
import { describeReal, kubectlSample } from "../support/real-parts.ts";

describeReal("kubectl", "sessions as kubectl lists, watches and ends them", () => {
  let demo: RunningDemo;
  beforeAll(async () => {
    demo = await startDemo();
  }, 120_000);
  afterAll(() => demo?.stop());

  const cases = kubectlSample().flatMap((kubectl) =>
    ["web", "web-ws"].map((pod) => ({ kubectl, version: kubectl.version, pod })),
  );
  it.each(cases)("kubectl $version, $pod", async ({ kubectl, pod }) => {
    const runner = new KubectlRunner(kubectl, { kubeconfig: demo.kubeconfig });
    const other = new KubectlRunner(kubectl, { kubeconfig: demo.kubeconfig });
    const started: ChildProcess[] = [];
    try {
      const shell = other.start(["exec", "-i", pod, "--", "sh", "-c", "echo ready; exec cat"]);
      started.push(shell);
      const output = collect(shell.stdout);
      const problem = collect(shell.stderr);
      const closed = new Promise<number | null>((resolve) => shell.once("close", resolve));
      await eventually("the command runs", () => output().includes("ready"));
      const run = async (...words: string[]) => {
        const { exitCode, stdout, stderr } = await runner.run(words);
        expect([exitCode, stderr]).toEqual([0, ""]);
        return stdout;
      };
      const named = await run("get", "streamingsessions", "-l", `sluice.dev/pod=${pod}`, "-o", "name");
      const [, name = ""] = /^streamingsession\.sluice\.dev\/(\S+)\n$/.exec(named) ?? [];
      const table = await run("get", "streamingsessions", "-A");
      expect(table).toMatch(/^NAMESPACE +NAME +POD +CONTAINER +SUBRESOURCE +USER +AGE\n/);
      expect(table).toMatch(new RegExp(`default +${name} +${pod} +main +exec +demo +\\d+s\\n`));
      expect(await run("describe", "streamingsession", name)).toContain("Subresource:  exec");
      // Before 1.29 it asks for OpenAPI v2 first, which only an API server behind the gateway has.
      if (Number(kubectl.version.split(".")[1]) >= 29) {
        const explained = await run("explain", "streamingsessions.status.joiners");
        expect(explained).toContain("The users that have joined it");
        expect(await run("explain", "recordings")).toMatch(/KIND: +Recording\n[\s\S]*spec\t<Object>/);
      }
      const watch = runner.start(["get", "sess", "-w", "--output-watch-events"]);
      started.push(watch);
      const events = collect(watch.stdout);
      await eventually("the watch shows what runs", () => events().includes("ADDED"));
      expect(await run("delete", "streamingsession", name)).toContain(`"${name}" deleted`);
      expect(await closed).toBe(1);
      expect(problem()).toContain("error: the session was ended by demo\n");
      await eventually("the watch shows the end", () => events().includes("DELETED"));
      const gone = await runner.run(["get", "streamingsession", name]);
      expect([gone.exitCode, gone.stderr]).toEqual([
        1,
        `Error from server (NotFound): streamingsessions.sluice.dev "${name}" not found\n`,
      ]);
    } finally {
      for (const child of started) child.kill("SIGKILL");
      runner.remove();
      other.remove();
    }
  }, 120_000);
});
