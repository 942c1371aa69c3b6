import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { eventually } from "../support/eventually.ts";
import { collect, KubectlRunner } from "../support/kubectl.ts";
import { describeReal, kubectlSample, oldestAndNewest } from "../support/real-parts.ts";
import { readMetricsOf } from "../support/taken-path.ts";

const NAME = "sluice_streaming_sessions_ended_total";
const COMPLETED = 'ended_by="node",cause="completed"';
const CLIENT_GONE = 'ended_by="client",cause="client-gone"';

describeReal("kubectl", "how kubectl's sessions end, as the gateway counts it", () => {
  let demo: RunningDemo;
  beforeAll(async () => {
    demo = await startDemo();
  }, 120_000);
  afterAll(() => demo?.stop());

  const ended = async () =>
    new Map([...(await readMetricsOf(demo.adminUrl))].filter(([name]) => name.startsWith(NAME)));

  /** The one session's end that was counted since. */
  const countedSince = async (before: ReadonlyMap<string, number>): Promise<string> => {
    const grown = async () =>
      [...(await ended())].filter(([name, count]) => count > (before.get(name) ?? 0)).map(([name]) => name);
    await eventually("an end is counted", async () => (await grown()).length > 0);
    const names = await grown();
    expect(names).toHaveLength(1);
    return names[0] as string;
  };

  const cases = oldestAndNewest(kubectlSample()).flatMap((kubectl) =>
    ["web", "web-ws"].map((pod) => ({ kubectl, version: kubectl.version, pod })),
  );
  describe.each(cases)("kubectl $version, $pod", ({ kubectl, pod }) => {
    const commands: [string, string[], string][] = [
      ["exec", ["exec", pod, "--", "sh", "-c", "echo ready; exec sleep 600"], "ready"],
      ["attach", ["attach", pod], ""],
      ["port-forward", ["port-forward", pod, ":80"], "Forwarding from"],
    ];
    const cuts = commands.flatMap(([name, command, first]) =>
      (["SIGINT", "SIGKILL"] as const).map((signal) => ({ name, command, first, signal })),
    );

    it.each([0, 7])("a command that exits with %i is complete", async (code) => {
      const runner = new KubectlRunner(kubectl, { kubeconfig: demo.kubeconfig });
      try {
        const before = await ended();
        expect((await runner.run(["exec", pod, "--", "sh", "-c", `exit ${code}`])).exitCode).toBe(code);
        expect(await countedSince(before)).toContain(COMPLETED);
      } finally {
        runner.remove();
      }
    });

    it.each(cuts)("$name left by $signal is the client's", async ({ command, first, signal }) => {
      const runner = new KubectlRunner(kubectl, { kubeconfig: demo.kubeconfig });
      try {
        const before = await ended();
        const child = runner.start(command);
        const output = collect(child.stdout);
        const running = async () =>
          (await (await fetch(new URL("/debug/sessions", demo.adminUrl))).json()) as unknown[];
        await eventually(
          "the session runs",
          async () => (await running()).length === 1 && output().includes(first),
        );
        child.kill(signal);
        await once(child, "close");
        expect(await countedSince(before)).toContain(CLIENT_GONE);
        await eventually("no session is left", async () => (await running()).length === 0);
      } finally {
        runner.remove();
      }
    });
  });
});
