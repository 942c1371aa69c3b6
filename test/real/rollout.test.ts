import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { release } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { backend, INGRESS_CLASS, ingressObject, serviceObjects } from "../support/front-door.ts";
import { selfSignedPair } from "../support/gateway-files.ts";
import { freePorts, listen } from "../support/http/loopback.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import { describeReal, isFullRun, kubectlSample, stateOf } from "../support/real-parts.ts";
import { ReplicaFiles, readJson, targetAt } from "../support/replicas.ts";
import { FrontDoorLoad } from "../support/rollout/front-door-load.ts";
import {
  forwardSession,
  type KubectlEnd,
  kubectlSession,
  SteadySessions,
  shellSession,
} from "../support/rollout/sessions.ts";
import { TcpBalancer } from "../support/rollout/tcp-balancer.ts";
import type { ServedGateway } from "../support/served-gateway.ts";
import { startTwoWayService } from "../support/two-way-service.ts";

const document = new URL("../../docs/evidence/rollout.md", import.meta.url);

const sizes = isFullRun
  ? { shells: 100, kubectls: 50, forwards: 50, perSecond: 50, delayMs: 5_000, graceMs: 60_000 }
  : { shells: 10, kubectls: 4, forwards: 6, perSecond: 25, delayMs: 5_000, graceMs: 8_000 };
/** How late the end of a kubectl may be noticed here, on a machine that is busy. */
const LATE_MS = 10_000;
/** A kubectl takes half a second of a processor to start. */
const KUBECTL_APART_MS = 500;
const POD_PORT = 5432;
const PAGE = "the page of the pod";
const REPLICAS = [0, 1, 2, 3];

/** Of one replacement. */
interface Replacement {
  readonly balancerMs: number;
  /** When its log has the end of the grace period. */
  readonly graceEndMs: number;
  readonly exitMs: number;
  readonly exitedAfterMs: number;
  /** What it still carried when the balancer had left it. */
  readonly sessions: number;
  /** Sessions that began there after that. */
  readonly late: number;
}

describeReal(["haproxy", "kubectl"], "two replicas behind a TCP balancer", () => {
  const stops: (() => unknown)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });

  it("are replaced in turn, and lose nothing", { timeout: 1_200_000 }, async () => {
    const service = await startTwoWayService();
    const pod = createServer((_request, response) => response.end(PAGE));
    stops.push(
      () => service.close(),
      () => pod.closeAllConnections(),
      () => pod.close(),
    );
    const { files, endpoints } = await configure(service.port, await listen(pod as Server));
    stops.push(() => files.stop());
    const served: ServedGateway[] = [];
    stops.push(() => Promise.all(served.map(({ child, exited }) => child.kill("SIGKILL") && exited)));
    served.push(...(await Promise.all([files.serve(0), files.serve(1)])));
    const balancer = await TcpBalancer.start(endpoints);
    stops.push(() => balancer.stop());
    await balancer.sendsTo(0, 1);

    let isOver = false;
    stops.push(() => {
      isOver = true;
    });
    const over = (): boolean => isOver;
    const target = targetAt(`https://127.0.0.1:${balancer.ports.movingApi}`);
    const shells = new SteadySessions(sizes.shells, (life) => shellSession(target, life));
    const forwards = new SteadySessions(sizes.forwards, (life) =>
      forwardSession(target, life, service, POD_PORT),
    );
    const { ends, running, open } = runKubectls(files, balancer.ports.api, over);
    const load = new FrontDoorLoad(balancer.ports.door, sizes.perSecond, PAGE);
    await eventually(
      () => `${sizes.kubectls} kubectls show what they are sent; ended: ${JSON.stringify(ends.slice(0, 3))}`,
      () => open() === sizes.kubectls && shells.areOpen && forwards.areOpen,
      { timeoutMs: 240_000 },
    );

    const replacements: Replacement[] = [];
    for (const index of [0, 1]) {
      served.push(await files.serve(index + 2));
      await balancer.sendsTo(...REPLICAS.slice(index, index + 3));
      const old = served[index] as ServedGateway;
      replacements.push(
        await replace(old, {
          left: () => balancer.sendsTo(index + 1, index + 2),
          cut: async () => {
            const before = shells.resumed + forwards.resumed;
            await balancer.cut(index);
            await eventually(
              () =>
                `all are resumed: ${shells.lost} + ${forwards.lost}, ${shells.resumed} + ${forwards.resumed}`,
              () => {
                const [lost, resumed] = [shells.lost + forwards.lost, shells.resumed + forwards.resumed];
                return resumed > before && lost === resumed;
              },
              { timeoutMs: 90_000 },
            );
            await Promise.all([shells.endTurn(), forwards.endTurn()]);
          },
        }),
      );
    }
    await eventually("kubectls run again", () => open() === sizes.kubectls, { timeoutMs: 240_000 });
    isOver = true;
    await Promise.all([shells.stop(), forwards.stop(), load.stop(), ...running]);

    if (process.env.SLUICE_WRITE_DOCS === "1") {
      writeFileSync(document, documentOf({ shells, forwards, ends, load, replacements }));
    }
    expect([...shells.faults, ...forwards.faults]).toEqual([]);
    expect(shells.resumed).toBeGreaterThan(0);
    expect(forwards.resumed).toBeGreaterThan(0);
    expect(load.failures).toEqual([]);
    expect(load.answered).toBe(load.sent);
    expect(load.goaways).toBeGreaterThan(0);
    expect(replacements.map(({ late }) => late)).toEqual([0, 0]);
    const cut = ends.filter(({ exitCode }) => exitCode !== 0);
    expect(cut.length).toBeGreaterThan(0);
    expect(cut.filter((end) => !isAtGraceEnd(end, replacements))).toEqual([]);
    expect(ends.filter(({ isWhole }) => !isWhole)).toEqual([]);
    expect(ends.filter(({ exitCode }) => exitCode === 0)).toHaveLength(sizes.kubectls);
  });
});

async function configure(servicePort: number, podPort: number) {
  const ports = await freePorts(3 * REPLICAS.length);
  const endpoints = REPLICAS.map((index) => {
    const [api = 0, admin = 0, door = 0] = ports.slice(3 * index);
    return { api, admin, door };
  });
  const files = await ReplicaFiles.create({
    count: REPLICAS.length,
    ports: new Map([[POD_PORT, servicePort]]),
    timeouts: { shutdownDelay: `${sizes.delayMs}ms`, shutdownGracePeriod: `${sizes.graceMs}ms` },
    tls: await selfSignedPair("replicas"),
    listeners: (index) => ({
      apiServer: { port: endpoints[index]?.api, tls: { certFile: "server.crt", keyFile: "server.key" } },
      admin: { port: endpoints[index]?.admin },
      ingress: {
        address: "127.0.0.1",
        httpPort: endpoints[index]?.door,
        httpsPort: 0,
        allowedEndpointAddresses: ["127.0.0.0/8"],
      },
    }),
    manifests: [
      INGRESS_CLASS,
      ...serviceObjects("pages", [{ port: podPort }]),
      ingressObject("all", { defaultBackend: backend("pages") }),
    ],
  });
  return { files, endpoints };
}

/** One loop for each kubectl: where its session is ended, it begins another. */
function runKubectls(files: ReplicaFiles, port: number, isOver: () => boolean) {
  const sample = kubectlSample();
  const kubeconfig = files.replicas[0]?.files.writeKubeconfig(`https://127.0.0.1:${port}`) ?? "";
  const runners = [sample[0], sample.at(-1)].flatMap((kubectl) =>
    kubectl === undefined ? [] : [new KubectlRunner(kubectl, { kubeconfig })],
  );
  const ends: KubectlEnd[] = [];
  let open = 0;
  const running = Array.from({ length: sizes.kubectls }, async (_, index) => {
    await pause(index * KUBECTL_APART_MS);
    const runner = runners[index % runners.length] as KubectlRunner;
    while (!isOver()) {
      let isOpen = false;
      const onOpen = (): void => {
        isOpen = true;
        open += 1;
      };
      ends.push(await kubectlSession(runner, isOver, onOpen));
      if (isOpen) open -= 1;
    }
  });
  void Promise.allSettled(running).then(() => {
    for (const runner of runners) runner.remove();
  });
  return { ends, running, open: () => open };
}

/** SIGTERM, and what follows until the process has ended. */
async function replace(
  old: ServedGateway,
  balancer: { left(): Promise<void>; cut(): Promise<void> },
): Promise<Replacement> {
  const startedMs = Date.now();
  old.child.kill("SIGTERM");
  await balancer.left();
  const leftMs = Date.now();
  const list = async () =>
    (await readJson(`${old.adminUrl}/debug/sessions`)) as { readonly startedAt: string }[];
  const { length: sessions } = await list();
  // Every session that can still begin there has begun when the delay is over.
  await eventually(
    "the delay is over",
    () => old.log().includes("draining sessions") || old.child.exitCode !== null,
    { timeoutMs: 60_000 },
  );
  const late = (await list()).filter(({ startedAt }) => Date.parse(startedAt) > leftMs + 500).length;
  await balancer.cut();
  expect(await old.exited).toEqual([0, null]);
  const exitMs = Date.now();
  const over = old.logLines().find(({ msg }) => msg.startsWith("the grace period is over"));
  const graceEndMs = Date.parse(String(over?.time));
  return {
    balancerMs: leftMs - startedMs,
    graceEndMs,
    exitMs,
    exitedAfterMs: exitMs - startedMs,
    sessions,
    late,
  };
}

function isAtGraceEnd({ atMs }: KubectlEnd, replacements: readonly Replacement[]): boolean {
  return replacements.some(({ graceEndMs, exitMs }) => atMs >= graceEndMs && atMs <= exitMs + LATE_MS);
}

interface Outcome {
  readonly shells: SteadySessions;
  readonly forwards: SteadySessions;
  readonly ends: readonly KubectlEnd[];
  readonly load: FrontDoorLoad;
  readonly replacements: readonly Replacement[];
}

function documentOf({ shells, forwards, ends, load, replacements }: Outcome): string {
  const cut = ends.filter(({ exitCode }) => exitCode !== 0);
  const early = cut.filter((end) => !isAtGraceEnd(end, replacements));
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
  const kib = (bytes: number): string => `${Math.round(bytes / 1024).toLocaleString("en")} KiB`;
  const row = (name: string, tally: SteadySessions): string =>
    `| ${name} | ${tally.count} | ${tally.finished} | ${tally.resumed} | ${kib(tally.bytes)} | ${tally.faults.length} |`;
  const bytes = ends.reduce((sum, end) => sum + end.bytes, 0);
  return `# A rollout of two replicas

Replacing two replicas under load loses no byte of a resumable session and no HTTP request.

1. Two processes with \`listeners.peers\` stand behind HAProxy (TCP mode), which checks \`/readyz\` every 100 ms.
2. For each: its successor starts, then it gets SIGTERM. It is unready for \`timeouts.shutdownDelay\`
   (${seconds(sizes.delayMs)}), then \`timeouts.shutdownGracePeriod\` (${seconds(sizes.graceMs)}) begins.
3. HAProxy cuts the resumable clients' connections, as balancers do, and keeps kubectl's. Resumable sessions
   continue through the other replica, end by themselves, and start again elsewhere.
4. All data is compared with what comes back, by byte or SHA-256.

| sessions | at once | ended by themselves, whole | resumed on another connection | payload | with lost or foreign bytes, or failed |
|---|---|---|---|---|---|
${row("shells of resumable clients", shells)}
${row("port-forwards of resumable clients, with traffic", forwards)}
| \`kubectl exec\` | ${sizes.kubectls} | ${ends.length - cut.length} | – | ${kib(bytes)} | ${ends.filter(({ isWhole }) => !isWhole).length} |

kubectl cannot resume: ${cut.length} of its sessions were cut, ${cut.length - early.length} at the end of a grace period, ${early.length} before.

| front door | |
|---|---|
| requests, half HTTP/1.1 and half HTTP/2; a second | ${load.sent}; ${load.perSecond.toFixed(0)} |
| answered with the right page | ${load.answered} |
| failed | ${load.failures.length} |
| sent once more by the client: a refused stream, a kept connection that was closed | ${load.repeated} |
| GOAWAYs | ${load.goaways} |

| replaced | the balancer had left it after | sessions then | begun there after that | the process ended after |
|---|---|---|---|---|
${replacements
  .map(
    ({ balancerMs, sessions, late, exitedAfterMs }, index) =>
      `| replica ${index + 1} | ${seconds(balancerMs)} | ${sessions} | ${late} | ${seconds(exitedAfterMs)} |`,
  )
  .join("\n")}

Written by \`SLUICE_WRITE_DOCS=1 npx vitest run test/real/rollout.test.ts\`: Node ${process.version.slice(1)}, HAProxy
${stateOf("haproxy").versions.join()}, kubectl ${kubectlSample().at(0)?.version} and ${kubectlSample().at(-1)?.version}, Linux ${release()}.
`;
}
