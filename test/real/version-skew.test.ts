import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { release, tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readSections } from "../support/evidence-sections.ts";
import { describeJourney, journeyOf } from "../support/journey.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import {
  type CheckedPod,
  checkAttach,
  checkCopy,
  checkExec,
  checkPortForward,
} from "../support/kubectl-checks.ts";
import {
  containerds,
  describeReal,
  isFullRun,
  kubectlSample,
  oldestAndNewest,
  type RealPart,
} from "../support/real-parts.ts";
import type { Kubectl } from "../support/real-parts-finder.ts";
import { expectedJourney, skewedApiServers, skewedNodes, toldApiServer } from "../support/skew.ts";
import { type SkewResult, skewTable } from "../support/skew-table.ts";
import { pairWithFakeNode, pairWithRuntime, type SkewedPair } from "../support/skewed-pair.ts";
import { type RunningContainerd, startContainerd } from "./containerd/start-containerd.ts";
import { runWebPod, webPod } from "./containerd/web-pod.ts";

const MIB = 1024 * 1024;
const document = path.resolve(import.meta.dirname, "../../docs/evidence/skew.md");

const checks = [
  { name: "exec", run: checkExec, webSocketSince: 30, plan: "translate" },
  { name: "attach", run: checkAttach, webSocketSince: 30, plan: "translate" },
  {
    name: "cp",
    run: (runner: KubectlRunner, pod: CheckedPod) => checkCopy(runner, pod, 4 * MIB),
    webSocketSince: 30,
    plan: "translate",
  },
  {
    name: "port-forward",
    run: (runner: KubectlRunner, pod: CheckedPod) =>
      checkPortForward(runner, pod, { requests: 20, concurrency: 5 }),
    webSocketSince: 31,
    plan: "tunnel",
  },
] as const;

/** What kubelets are made of, and the pod on them. */
interface Stage {
  readonly title: string;
  readonly parts: readonly RealPart[];
  /** Returns why it can not be, or nothing. */
  set(): Promise<string | undefined>;
  pair(...pair: Parameters<typeof pairWithFakeNode>): Promise<SkewedPair>;
  pod(): CheckedPod;
  /** 400: it takes the tunnel for a legacy port-forward that names no port. 403: it leaves that to its runtime. */
  readonly tunnelRefusal: 400 | 403;
  readonly kubectls: readonly Kubectl[];
  clear(): Promise<void>;
}

const stages: readonly Stage[] = [fakeStage(), runtimeStage()];
const resultsOf = new Map<Stage, SkewResult[]>(stages.map((stage) => [stage, []]));

afterAll(() => {
  if (process.env.SLUICE_WRITE_DOCS === "1") writeFileSync(document, documentText());
});

for (const stage of stages) {
  describeReal(stage.parts, `KEP-4006's version skew, ${stage.title}`, () => {
    const results = resultsOf.get(stage) ?? [];
    let obstacle: string | undefined;
    beforeAll(async () => {
      obstacle = await stage.set();
    });
    beforeEach((context) => {
      context.skip(obstacle !== undefined, obstacle);
    });
    afterAll(() => stage.clear());

    const pairs = [...skewedApiServers, toldApiServer].flatMap((api) =>
      skewedNodes.map((node) => ({ api, node })),
    );
    describe.each(pairs)("API server $api.name, node $node.title", ({ api, node }) => {
      // Each kubectl meets an API server that has learned nothing of its node yet.
      describe.each(oldestAndNewest(stage.kubectls))("kubectl $version", (kubectl) => {
        let pair: SkewedPair | undefined;
        beforeAll(async () => {
          if (obstacle === undefined) pair = await stage.pair(api, node);
        });
        afterAll(() => pair?.stop());

        it.each(checks)("$name", async ({ name, run, webSocketSince, plan }) => {
          if (pair === undefined) throw new Error("no pair");
          const combination = `${api.name} | ${node.title}`;
          const result = {
            combination,
            kubectl: kubectl.version,
            check: name,
            hasPassed: false,
            journey: "?",
          };
          results.push(result);
          const runner = new KubectlRunner(kubectl, { kubeconfig: pair.kubeconfig });
          try {
            const journey = await journeyOf(pair.readMetrics, () => run(runner, stage.pod()));
            result.journey = describeJourney(journey);
            const isWebSocket = kubectl.minor >= webSocketSince;
            const isFirst = name === "exec" || name === "port-forward";
            const expected = expectedJourney(api, node, isWebSocket, plan, isFirst, stage.tunnelRefusal);
            expect(result.journey).toBe(expected);
            result.hasPassed = true;
          } finally {
            runner.remove();
          }
        });
      });
    });
  });
}

function fakeStage(): Stage {
  let folder = "";
  return {
    title: "nodes are fake nodes",
    parts: ["kubectl"],
    kubectls: kubectlSample(),
    set: async () => {
      folder = mkdtempSync(path.join(tmpdir(), "sluice-skew-"));
      return undefined;
    },
    tunnelRefusal: 400,
    pair: pairWithFakeNode,
    pod: () => ({ name: "web", container: "main", folder, httpPort: 80 }),
    clear: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

function runtimeStage(): Stage {
  let containerd: RunningContainerd | undefined;
  return {
    title: "nodes are a second Sluice in front of containerd",
    parts: ["kubectl", "containerd"],
    // Fake nodes show which protocol each kubectl ends up with; in ordinary runs the newest alone meets containerd.
    kubectls: kubectlSample().slice(isFullRun ? 0 : -1),
    set: async () => {
      const installed = containerds().find(({ isInstalled }) => isInstalled);
      if (installed === undefined) return "containerd is not installed";
      containerd = await startContainerd(installed);
      await runWebPod(containerd);
      return undefined;
    },
    tunnelRefusal: 403,
    pair: (api, node) => pairWithRuntime(containerd?.socket ?? "", api, node),
    pod: () => webPod,
    clear: async () => await containerd?.stop(),
  };
}

function documentText(): string {
  const tables = stages.map((stage) => {
    const results = resultsOf.get(stage) ?? [];
    const passed = results.filter(({ hasPassed }) => hasPassed).length;
    const table = results.length === 0 ? "Not run." : skewTable(results);
    return `## ${stage.title.replace(/^./, (letter) => letter.toUpperCase())}\n\n${passed} of ${results.length} checks passed.\n\n${table}\n`;
  });
  // Of test/cluster/skew.test.ts.
  const real = readSections(document)
    .sections.filter((section) => section.startsWith("## A real API server"))
    .map((section) => `${section}\n`);
  return `# Version skew between API server and node

Every kubectl streams through every pair of API server and node of KEP-4006 ("Version Skew within the
Control Plane and Nodes"). The API servers are Sluice with feature gates; a cell is the path by their own
counters, and another than the expected one fails the check.

| check | what it does |
|---|---|
| exec | piped stdin, exit code 7 |
| cp | 4 MiB in and out, SHA-256 compared |
| port-forward | 20 requests |

- API server 1 forwards a WebSocket it does not know, as kube-apiserver did: the node answers or refuses,
  and kubectl retries a refusal over SPDY.
- API server 3 believes the node's declaration. A kubelet too new to declare the feature gets translation,
  unless \`kubelet.streaming\` says that it takes WebSocket (docs/node-capability.md).
- The last rows go beyond the KEP: \`kubelet.streaming.mode: websocket\` claims that every node takes
  WebSocket. A node's refusal is noticed before kubectl is answered, and remembered.

Written by \`SLUICE_WRITE_DOCS=1 npx vitest run test/real/version-skew\` on Node ${process.version.slice(1)},
Linux ${release()}; the sections on real API servers by \`npm run test:cluster -- test/cluster/skew.test.ts\`,
also with \`SLUICE_API_SERVER=oldest\`. There a cell is the protocol that reached the node, by the node's
counter. An API server before 1.36 keeps no declared features, so it, and a gateway before it, translate.

${[...tables, ...real].join("\n")}`;
}
