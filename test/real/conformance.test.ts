import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Target } from "../../packages/client/src/index.ts";
import { type Advice, adviceFor } from "../../packages/lab/src/conformance/advice.ts";
import { ALL_CASES } from "../../packages/lab/src/conformance/all-cases.ts";
import type { ConformanceReport } from "../../packages/lab/src/conformance/conformance-report.ts";
import {
  apiServerEndpoint,
  type Endpoint,
  kubeletEndpoint,
} from "../../packages/lab/src/conformance/endpoint.ts";
import { runConformance } from "../../packages/lab/src/conformance/run-cases.ts";
import { runFakeNode } from "../../packages/lab/src/fake-node/run-fake-node.ts";
import { command } from "../../src/cli/commands/conformance.ts";
import { openEndpoint } from "../../src/cli/conformance/conformance.ts";
import { parseFlags } from "../../src/cli/parse-flags.ts";
import {
  HOP_IDLE_SCALE,
  startAdvisedEnvoy,
  startAdvisedHaproxy,
  startAdvisedNginx,
  startKubectlProxy,
} from "../support/conformance/configured-hops.ts";
import { runEchoPod, serveEcho } from "../support/conformance/echo-pod.ts";
import {
  ATTACH_WITHOUT_INPUT,
  type KnownFailure,
  TRUNCATION,
  UNREAD_INPUT,
  unexplained,
} from "../support/conformance/known-failures.ts";
import { publish } from "../support/conformance/published-table.ts";
import { quickSettings, TestedDemo, troubles } from "../support/conformance/tested-demo.ts";
import { KubernetesPeers } from "../support/kubernetes-peers.ts";
import { describeReal, isFullRun, kubectls, programOf } from "../support/real-parts.ts";
import { describeEachContainerd } from "./containerd/each-containerd.ts";

const RUN_MS = 400_000;
const POD = { namespace: "default", pod: "web", container: "main" };

async function judge(
  name: string,
  endpoint: Endpoint,
  known: readonly KnownFailure[] = [],
  except: RegExp = /^$/,
): Promise<ConformanceReport> {
  const cases = ALL_CASES.filter(({ id }) => !except.test(id));
  const report = await runConformance(endpoint, {
    cases,
    settings: { ...quickSettings, idleScale: HOP_IDLE_SCALE },
  });
  publish(name, report, known);
  return report;
}

/** A run of all cases takes minutes: ordinary runs judge nginx, the installed containerd and Sluice, SLUICE_FULL=1 the others, too. */
const describeOnFullRuns: typeof describeReal = (needed, name, tests) => {
  if (isFullRun) describeReal(needed, name, tests);
  else describe.skip(`${name} (SLUICE_FULL=1)`, tests);
};

function valuesOf(args: readonly string[]): Parameters<typeof openEndpoint>[0] {
  const invocation = parseFlags(command, args);
  if (invocation === "help") throw new Error("help was not asked for");
  return invocation.values;
}

/** containerd lets them run into their time-outs. */
const LONG_CASES = isFullRun ? /^$/ : UNREAD_INPUT.cases;
const OF_CONTAINERD = [TRUNCATION, ATTACH_WITHOUT_INPUT, UNREAD_INPUT];
const passedOf = ({ cases }: ConformanceReport): string[] =>
  cases.filter(({ verdict }) => verdict === "passed").map(({ id }) => id);
const failuresOf = ({ cases }: ConformanceReport): string[] =>
  cases.filter(({ verdict }) => verdict === "failed").map(({ id }) => id);

describe("conformance of real hops and servers", () => {
  let demo: TestedDemo;
  let direct: Target;
  beforeAll(async () => {
    demo = await TestedDemo.start();
    direct = await demo.target();
  });
  afterAll(() => demo.stop());

  const behind = (url: string): Endpoint =>
    apiServerEndpoint(
      new Target({ url, tls: { insecureSkipVerify: true }, headers: () => direct.headers() }),
      POD,
    );

  /** The first configuration, and what each report advises, until nothing fails or nothing new is advised. */
  async function mend(
    name: string,
    start: (port: number, advices: readonly Advice[]) => Promise<{ url: string; stop(): Promise<void> }>,
  ): Promise<ConformanceReport[]> {
    const reports: ConformanceReport[] = [];
    const advices = new Set<Advice>();
    for (let round = 0; ; round++) {
      const hop = await start(Number(direct.url.port), [...advices]);
      try {
        const how = round === 0 ? "as it is by default" : `with the advice of report ${round}`;
        reports.push(await judge(`${name}, ${how}`, behind(hop.url)));
      } finally {
        await hop.stop();
      }
      const before = advices.size;
      const last = reports.at(-1);
      for (const one of last?.cases ?? []) if (one.verdict === "failed") advices.add(adviceFor(one));
      if (advices.size === before) return reports;
    }
  }

  describeReal("nginx", "nginx", () => {
    it("fails by default, and is mended by what the reports advise", { timeout: 3 * RUN_MS }, async () => {
      const reports = await mend("nginx", startAdvisedNginx);
      expect(failuresOf(reports[0] as ConformanceReport)).toContain("negotiation/websocket-v5");
      expect(troubles(reports.at(-1) as ConformanceReport)).toEqual([
        "http2/extended-connect skipped: the endpoint does not offer HTTP/2",
      ]);
    });
  });

  describeOnFullRuns("haproxy", "HAProxy", () => {
    it("cuts silence by default, and is mended by what the reports advise", {
      timeout: 3 * RUN_MS,
    }, async () => {
      const reports = await mend("HAProxy", startAdvisedHaproxy);
      expect(failuresOf(reports[0] as ConformanceReport)).toContain("idle/silent-60s/websocket-v5");
      expect(troubles(reports.at(-1) as ConformanceReport)).toEqual([
        "http2/extended-connect skipped: the endpoint does not offer HTTP/2",
      ]);
    });
  });

  describeOnFullRuns("envoy", "Envoy", () => {
    it("refuses upgrades by default, and is mended by what the reports advise", {
      timeout: 4 * RUN_MS,
    }, async () => {
      const program = programOf("envoy");
      const reports = await mend("Envoy", (port, advices) => startAdvisedEnvoy(program, port, advices));
      expect(failuresOf(reports[0] as ConformanceReport)).toContain("negotiation/websocket-v5");
      expect(troubles(reports.at(-1) as ConformanceReport)).toEqual([
        "http2/extended-connect skipped: the endpoint does not offer HTTP/2",
      ]);
    });
  });

  describeOnFullRuns("kubectl", "kubectl proxy", () => {
    it("refuses exec and attach by default", { timeout: RUN_MS }, async () => {
      const hop = await startKubectlProxy(kubectls().at(-1)?.path ?? "kubectl", demo.kubeconfig, []);
      try {
        const report = await judge("kubectl proxy, as it is by default", behind(hop.url));
        expect(failuresOf(report)).toEqual(
          expect.arrayContaining(["negotiation/websocket-v5", "negotiation/spdy"]),
        );
      } finally {
        await hop.stop();
      }
    });

    it("carries sessions where they are not refused", { timeout: RUN_MS }, async () => {
      const flags = ["--reject-paths=^$"];
      const hop = await startKubectlProxy(kubectls().at(-1)?.path ?? "kubectl", demo.kubeconfig, flags);
      try {
        const report = await judge("kubectl proxy --reject-paths=^$", behind(hop.url), [TRUNCATION]);
        expect(unexplained(report, [TRUNCATION])).toEqual([]);
      } finally {
        await hop.stop();
      }
    });
  });

  describeOnFullRuns("go", "Kubernetes' API-server handlers", () => {
    const name = "translate, tunnel and pass on; commands by the fake node, ports by Kubernetes' own server";
    it(name, { timeout: RUN_MS }, async () => {
      const ports = new KubernetesPeers();
      const shells = new KubernetesPeers();
      const containers = [{ name: "c", command: ["cat"] }];
      const pods = [{ namespace: "default", name: "pod", uid: "uid", containers }];
      const node = await runFakeNode({ name: "node", declaresWebSockets: false, pods });
      try {
        await ports.start();
        await shells.startHandlers(`http://127.0.0.1:${node.port}`);
        const endpointOf = ({ handlersPort }: KubernetesPeers) =>
          kubeletEndpoint(new Target({ url: `http://127.0.0.1:${handlersPort}`, proxy: "none" }), {
            namespace: "default",
            pod: "pod",
            container: "c",
          });
        const [portsOf, shellsOf] = [endpointOf(ports), endpointOf(shells)];
        const endpoint: Endpoint = {
          ...shellsOf,
          placeOf: (request) => (request.kind === "port-forward" ? portsOf : shellsOf).placeOf(request),
        };
        // They know one container, and no attach.
        const report = await judge(
          "Kubernetes' API-server handlers",
          endpoint,
          [TRUNCATION],
          /^(?:attach|errors\/unknown)/,
        );
        expect(unexplained(report, [TRUNCATION])).toEqual([]);
      } finally {
        await Promise.all([ports.stop(), shells.stop(), node.close()]);
      }
    });
  });

  describeReal("containerd", "containerd's streaming server", () => {
    describeEachContainerd((running, { version, isInstalled }) => {
      it("speaks SPDY and the older WebSockets", { timeout: RUN_MS }, async ({ skip }) => {
        skip(!isFullRun && !isInstalled, "SLUICE_FULL=1");
        const containerd = running();
        if (containerd === undefined) return;
        await runEchoPod(containerd);
        const stopEcho = await serveEcho(containerd.cri);
        const flags = ["--pod", "default/echo/main", "--runtime-endpoint", `unix://${containerd.socket}`];
        const { endpoint, close } = await openEndpoint(valuesOf(flags));
        try {
          const report = await judge(`containerd ${version}`, endpoint, OF_CONTAINERD, LONG_CASES);
          expect(unexplained(report, OF_CONTAINERD)).toEqual([]);
          expect(passedOf(report)).toContain("exec/exit-codes/spdy");
        } finally {
          close?.();
          await stopEcho();
        }
      });
    });
  });

  it("Sluice itself, for comparison", { timeout: RUN_MS }, async ({ skip }) => {
    skip(!isFullRun, "SLUICE_FULL=1");
    expect(failuresOf(await judge("Sluice", apiServerEndpoint(direct, POD)))).toEqual([]);
  });
});
