import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sluiceCommand } from "../support/built-program.ts";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { eventually } from "../support/eventually.ts";
import { collect, KubectlRunner } from "../support/kubectl.ts";
import { describeReal, kubectlSample, oldestAndNewest } from "../support/real-parts.ts";

describeReal("kubectl", "the demo's pod by what selects it", () => {
  let demo: RunningDemo;
  beforeAll(async () => {
    demo = await startDemo();
  }, 120_000);
  afterAll(() => demo?.stop());

  const sluice = {
    version: "sluice",
    start: (args: readonly string[]) => {
      const [file, all] = sluiceCommand(args[0] ?? "", "--kubeconfig", demo.kubeconfig, ...args.slice(1));
      return spawn(file, all);
    },
  };
  const kubectls = oldestAndNewest(kubectlSample()).map((kubectl) => ({
    version: kubectl.version,
    start: (args: readonly string[]) =>
      new KubectlRunner(kubectl, { kubeconfig: demo.kubeconfig }).start([...args]),
  }));

  describe.each([sluice, ...kubectls])("$version", ({ start }) => {
    it.each(["deploy/web", "deployment.apps/web", "svc/web"])("%s", async (resource) => {
      const outputOf = async (...args: readonly string[]): Promise<string> => {
        const child = start(args);
        const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
        const [exitCode] = await once(child, "close");
        expect([exitCode, stderr()]).toEqual([0, ""]);
        return stdout();
      };
      expect(await outputOf("logs", resource)).toContain("container main is running");
      expect(await outputOf("exec", resource, "--", "echo", "hello")).toBe("hello\n");
      const forward = start(["port-forward", resource, ":80"]);
      const forwarded = collect(forward.stdout);
      const closed = once(forward, "close");
      try {
        const at = await eventually("it forwards", () => /127\.0\.0\.1:\d+/.exec(forwarded())?.[0]);
        expect((await fetch(`http://${at}/`)).status).toBe(200);
      } finally {
        forward.kill();
        await closed;
      }
    });
  });
});
