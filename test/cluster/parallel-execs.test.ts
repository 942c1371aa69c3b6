import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { exec, kubeconfigTarget } from "../../packages/client/src/index.ts";
import { loadKubeconfig } from "../../packages/client/src/kubernetes/kubeconfig.ts";
import { ECHO_POD } from "../support/conformance/echo-pod.ts";
import { publishSection } from "../support/evidence-sections.ts";
import { evidenceTable } from "../support/evidence-table.ts";
import { describeFull } from "../support/real-parts.ts";
import { startEchoPod } from "./cluster-endpoints.ts";
import { type Door, type Doors, openDoors } from "./doors.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";

const EXECS = 50;
const ROUNDS = Number(process.env.SLUICE_ROUNDS ?? 5);
const EXEC_TIMEOUT_MS = 60_000;
const CLOCK_TICKS_A_SECOND = 100;

interface Sample {
  readonly seconds: number;
  readonly cpuMs: number;
}

/** User and system time of a process. */
function cpuMsOf(pid: number | undefined): number {
  if (pid === undefined) return 0;
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13);
  return ((Number(user) + Number(system)) / CLOCK_TICKS_A_SECOND) * 1_000;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** The median, with minimum and maximum. */
const spread = (values: readonly number[], digits: number): string =>
  `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)}-${Math.max(...values).toFixed(digits)})`;

describeFull(["cluster"], "commands at once in a cluster", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  let opened: Doors;

  beforeAll(async () => {
    opened = await openDoors(cluster, ["straight", "gateway"]);
    await startEchoPod(cluster);
  });
  afterAll(() => opened?.stop());

  const clients: readonly [string, (kubeconfig: string) => Promise<() => Promise<string>>][] = [
    [
      "kubectl, a process each",
      async (kubeconfig) => async () => {
        const args = ["--kubeconfig", kubeconfig, "exec", ECHO_POD.pod, "--", "echo", "here"];
        const options = { timeout: EXEC_TIMEOUT_MS };
        return (await promisify(execFile)(path.join(cluster.programs, "kubectl"), args, options)).stdout;
      },
    ],
    [
      "@sluice/client, one process",
      async (kubeconfig) => {
        const target = kubeconfigTarget(await loadKubeconfig(kubeconfig, undefined));
        const namespace = ECHO_POD.namespace;
        return async () => {
          const parts: Buffer[] = [];
          const stdout = new PassThrough().on("data", (part: Buffer) => parts.push(part));
          const signal = AbortSignal.timeout(EXEC_TIMEOUT_MS);
          await exec({ target, namespace }, ECHO_POD, ["echo", "here"], { stdout, signal });
          return Buffer.concat(parts).toString();
        };
      },
    ],
  ];

  it("cost the gateway its part, straight and through it in turns", { timeout: 1_200_000 }, async () => {
    const { doors } = opened;
    const rows: string[][] = [];
    for (const [client, clientOf] of clients) {
      const runs = await Promise.all(
        doors.map(async (door) => ({
          door,
          run: await clientOf((await door.access("alice")).kubeconfig),
          samples: [] as Sample[],
        })),
      );
      for (let round = -1; round < ROUNDS; round += 1) {
        for (const { door, run, samples } of runs) {
          const sample = await timed(door, run);
          if (round >= 0) samples.push(sample);
        }
      }
      const [straight] = runs;
      for (const { door, samples } of runs) {
        const ratios = samples.map(
          ({ seconds }, index) => seconds / (straight?.samples[index]?.seconds ?? 1),
        );
        const cpu = samples.map(({ cpuMs }) => cpuMs / EXECS);
        rows.push([
          client,
          door.name,
          spread(
            samples.map(({ seconds }) => seconds),
            2,
          ),
          `${median(ratios).toFixed(2)}x`,
          door.pid === undefined ? "" : spread(cpu, 1),
        ]);
      }
    }
    const table = evidenceTable(
      ["clients", "way", "s", "of straight", "CPU of the gateway, ms an exec"],
      rows,
    );
    console.log(table);
    publishSection(
      "api-requests.md",
      "Fifty commands at once in a cluster",
      `\`SLUICE_WRITE_DOCS=1 npx vitest run --config test/cluster/vitest.config.ts test/cluster/parallel-execs.test.ts\`, ${new Date().toISOString().slice(0, 10)}; ${cpus().length} cores that clients, cluster and gateway share, Kubernetes ${cluster.version}, a load average of ${loadavg()[0]?.toFixed(1)} at the end. ${EXECS} times \`exec\` of \`echo\` in one pod, begun at once, until the last has ended. Medians of ${ROUNDS} rounds in turns, with minimum and maximum.

${table}
`,
    );
    expect(rows).toHaveLength(2 * clients.length);
  });

  async function timed({ pid }: Door, run: () => Promise<string>): Promise<Sample> {
    const [beganMs, cpuBefore] = [performance.now(), cpuMsOf(pid)];
    const outputs = await Promise.all(Array.from({ length: EXECS }, run));
    const sample = { seconds: (performance.now() - beganMs) / 1_000, cpuMs: cpuMsOf(pid) - cpuBefore };
    expect(outputs).toEqual(Array(EXECS).fill("here\n"));
    return sample;
  }
});
