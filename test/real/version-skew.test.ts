import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { release, tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSelfSignedCertificate, runStandinNode, type StandinNode } from "../../src/standin/index.ts";
import { describeJourney, journeyOf } from "../support/journey.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import {
  type CheckedPod,
  checkAttach,
  checkCopy,
  checkExec,
  checkPortForward,
} from "../support/kubectl-checks.ts";
import { describeReal, kubectlSample } from "../support/real-parts.ts";
import {
  expectedJourney,
  type SkewedApiServer,
  type SkewedNode,
  skewedApiServers,
  skewedNodes,
} from "../support/skew.ts";
import { type SkewResult, skewTable } from "../support/skew-table.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

const MIB = 1024 * 1024;
const document = path.resolve(import.meta.dirname, "../../docs/skew.md");

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

/** Behind every API server of the table: told that a stable kubelet takes WebSocket, it passes it through without a declaration. */
const toldApiServer = {
  name: "3., with `kubelet.streaming.nodes: { node-stable: websocket }`",
  featureGates: {},
  speaksWebSocket: true,
  asksNodes: true,
} as const satisfies SkewedApiServer;

describeReal("kubectl", "KEP-4006's version skew: three API servers by three nodes", () => {
  const results: SkewResult[] = [];
  const nodes = new Map<string, StandinNode>();
  let folder: string;
  let tls: Awaited<ReturnType<typeof createSelfSignedCertificate>>;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-skew-"));
    tls = await createSelfSignedCertificate();
    for (const { name, speaksWebSocket } of skewedNodes)
      nodes.set(name, await startNode(name, speaksWebSocket));
  });
  afterAll(async () => {
    for (const node of nodes.values()) await node.close();
    rmSync(folder, { recursive: true, force: true });
    if (process.env.SLUICE_WRITE_DOCS === "1" && results.length > 0) {
      writeFileSync(document, documentText(results));
    }
  });

  function startNode(name: string, declaresWebSockets: boolean): Promise<StandinNode> {
    const command = ["/bin/sh", "-c", "exec cat"];
    const containers = [{ name: "main", command }];
    const pod = { namespace: "default", name: podOn(name), uid: name, containers };
    return runStandinNode({ name, declaresWebSockets, tls, pods: [pod] });
  }

  async function startApiServer(featureGates: object, streaming: object = {}): Promise<TestGateway> {
    return await startTestGateway({
      nodes: skewedNodes.map(({ name, declares }) => ({
        name,
        port: nodes.get(name)?.port ?? 0,
        declaredFeatures: declares ? ["ExtendWebSocketsToKubelet"] : [],
      })),
      pods: skewedNodes.map(({ name }) => ({ name: podOn(name), nodeName: name, container: "main" })),
      kubeletAuthority: tls.certPem,
      configuration: { featureGates },
      kubelet: { streaming },
    });
  }

  const combinations: { api: SkewedApiServer; streaming: object; nodesBehind: readonly SkewedNode[] }[] = [
    ...skewedApiServers.map((api) => ({ api, streaming: {}, nodesBehind: skewedNodes })),
    {
      api: toldApiServer,
      streaming: { nodes: { "node-stable": "websocket" } },
      nodesBehind: skewedNodes.slice(-1).map((node) => ({ ...node, declares: true })),
    },
  ];
  describe.each(combinations)("$api.name", ({ api, streaming, nodesBehind }) => {
    let gateway: TestGateway;
    beforeAll(async () => {
      gateway = await startApiServer(api.featureGates, streaming);
    });
    afterAll(() => gateway?.stop());

    describe.each(kubectlSample())("kubectl $version", (kubectl) => {
      let runner: KubectlRunner;
      beforeAll(() => {
        runner = new KubectlRunner(kubectl, { kubeconfig: gateway.kubeconfig });
      });
      afterAll(() => runner?.remove());

      describe.each(nodesBehind)("$title", (node: SkewedNode) => {
        it.each(checks)("$name", async ({ name, run, webSocketSince, plan }) => {
          const combination = `${api.name} | ${skewedNodes.find(({ name: known }) => known === node.name)?.title}`;
          const result = {
            combination,
            kubectl: kubectl.version,
            check: name,
            hasPassed: false,
            journey: "?",
          };
          results.push(result);
          const pod = { name: podOn(node.name), container: "main", folder, httpPort: 80 };
          const journey = await journeyOf(gateway.readMetrics, () => run(runner, pod));
          result.journey = describeJourney(journey);
          const comesOverWebSocket = kubectl.minor >= webSocketSince;
          expect(result.journey).toBe(expectedJourney(api, node, comesOverWebSocket, plan));
          result.hasPassed = true;
        });
      });
    });
  });
});

function podOn(node: string): string {
  return node.replace("node", "pod");
}

function documentText(results: readonly SkewResult[]): string {
  const passed = results.filter(({ hasPassed }) => hasPassed).length;
  return `# Version skew between API server and node

Written by \`SLUICE_WRITE_DOCS=1 npx vitest run test/real/version-skew\`; not edited by hand. ${passed} of ${results.length} checks passed.

The three API servers and three kubelets of KEP-4006 ("Version Skew within the Control Plane and Nodes") as configurations of Sluice:
the API servers by feature gates, the nodes by what they take and declare. Each cell is exec (piped stdin, exit code 7), attach, cp of 4 MiB
in and out with SHA-256 compared, and port-forward of 20 requests, by a real kubectl; the path is what the gateway's own counters show, and
another than the expected one fails the check. Ran on Node ${process.version.slice(1)}, Linux ${release()}.

${skewTable(results)}

- The first API server forwards a WebSocket that it does not know, as kube-apiserver did. A node that does not know it either refuses, and
  kubectl comes again over SPDY; a node that takes it answers itself.
- The third API server takes a node at its declaration. A kubelet for which the feature is so old that it is no longer declared works by
  translation, until \`kubelet.streaming\` says that it takes WebSocket (docs/node-capability.md), which the last row shows.
`;
}
