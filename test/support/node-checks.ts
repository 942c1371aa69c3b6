import { once } from "node:events";
import { expect } from "vitest";
import { eventually } from "./eventually.ts";
import { collect, type KubectlRunner } from "./kubectl.ts";
import type { CheckedPod } from "./kubectl-checks.ts";
import type { MetricSamples } from "./taken-path.ts";

/** Commands, keyed by the exit code that kubectl must have. */
const COMMANDS: Readonly<Record<number, string>> = {
  0: "true",
  1: "false",
  7: "exit 7",
  126: "/etc/passwd",
  127: "no-such-command",
  137: "kill -9 $$",
};

export async function checkExitCodes(runner: KubectlRunner, pod: CheckedPod): Promise<void> {
  const seen: Record<string, number | null> = {};
  for (const [code, script] of Object.entries(COMMANDS)) {
    const command = ["exec", pod.name, "-c", pod.container, "--", "sh", "-c", script];
    seen[code] = (await runner.run(command)).exitCode;
  }
  expect(seen).toEqual({ 0: 0, 1: 1, 7: 7, 126: 126, 127: 127, 137: 137 });
}

/**
 * Checks that the main process' output arrives while it runs, that a line of many parts is
 * complete, and that options work.
 */
export async function checkLogs(runner: KubectlRunner, pod: CheckedPod): Promise<void> {
  const logs = ["logs", pod.name, "-c", pod.container];
  const write = async (script: string) => {
    const command = ["exec", pod.name, "-c", pod.container, "--", "sh", "-c", script];
    expect(await runner.run(command)).toMatchObject({ exitCode: 0 });
  };
  const marker = `marker of ${runner.version} ${process.hrtime.bigint()}`;
  const child = runner.start([...logs, "-f", "--tail=1"]);
  const followed = collect(child.stdout);
  const problems = collect(child.stderr);
  const closed = once(child, "close");
  try {
    await write(`echo ${marker} > /proc/1/fd/1`);
    await eventually(
      () => `kubectl logs -f shows it; stderr: ${problems()}`,
      () => followed().includes(`${marker}\n`),
      { timeoutMs: 20_000 },
    );
  } finally {
    child.kill("SIGKILL");
    await closed;
  }
  await write("(head -c 40000 /dev/zero | tr '\\0' x; echo) > /proc/1/fd/1");
  const long = `${"x".repeat(40_000)}\n`;
  const tail = await eventually("the long line is logged", async () => {
    const { stdout } = await runner.run([...logs, "--tail=1"]);
    return stdout.endsWith("x\n") ? stdout : undefined;
  });
  expect(tail.length, "all parts of one line").toBe(long.length);
  expect((await runner.run([...logs, "--tail=2"])).stdout).toBe(`${marker}\n${long}`);
  expect((await runner.run([...logs, "--tail=1", "--limit-bytes=10"])).stdout).toBe("x".repeat(10));
  expect((await runner.run([...logs, "--since=1h", "--tail=1"])).stdout).toBe(long);
  expect((await runner.run([...logs, "--timestamps", "--tail=2"])).stdout).toMatch(
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z marker .*\n\d{4}-\S+Z x{40000}\n$/,
  );
  const refused = await runner.run([...logs, "--previous"]);
  expect(refused).toMatchObject({ exitCode: 1 });
  expect(refused.stderr).toContain(
    `previous terminated container "${pod.container}" in pod "${pod.name}" not found`,
  );
}

/**
 * The paths of sessions behind the kubelet listener, by its own counters: `translate`, `tunnel`,
 * `pass-through`.
 */
export function nodePlans(before: MetricSamples, after: MetricSamples): string[] {
  const plans = new Set<string>();
  for (const [name, value] of after) {
    const plan = /^sluice_kubelet_streaming_requests_total\{.*plan="([^"]+)",code="101"\}$/.exec(name)?.[1];
    if (plan !== undefined && value > (before.get(name) ?? 0)) plans.add(plan);
  }
  return [...plans];
}
