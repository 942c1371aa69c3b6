import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { release, tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import {
  type CheckedPod,
  checkAttach,
  checkCopy,
  checkExec,
  checkPortForward,
  checkTerminal,
} from "../support/kubectl-checks.ts";
import { type CheckResult, kubectlTable } from "../support/kubectl-table.ts";
import { describeReal, isFullRun, kubectlSample, kubectls } from "../support/real-parts.ts";
import type { Kubectl } from "../support/real-parts-finder.ts";
import { parseMetrics, pathTakenBy } from "../support/taken-path.ts";

const MIB = 1024 * 1024;
const isWritingDocs = process.env.SLUICE_WRITE_DOCS === "1";
const document = path.resolve(import.meta.dirname, "../../docs/evidence/kubectl-matrix.md");

/** Documentation is made with full copies by every kubectl, and a full run with those of the sample. */
function copyBytes(kubectl: Kubectl): number {
  return isWritingDocs || (isFullRun && kubectlSample().includes(kubectl)) ? 256 * MIB : 16 * MIB;
}

interface Check {
  name: string;
  run(runner: KubectlRunner, pod: CheckedPod, kubectl: Kubectl): Promise<void>;
  /** The first minor release of kubectl that comes over WebSocket unless told otherwise. */
  webSocketSince: number;
  /** How WebSocket requests reach a node that speaks SPDY only. */
  planToSpdyNode: "translate" | "tunnel";
}

const remoteCommand = { webSocketSince: 30, planToSpdyNode: "translate" } as const;
const checks: readonly Check[] = [
  { name: "exec, piped stdin, exit code 7", run: checkExec, ...remoteCommand },
  { name: "exec -it with resize", run: checkTerminal, ...remoteCommand },
  { name: "attach", run: checkAttach, ...remoteCommand },
  {
    name: "cp in and out",
    run: (runner, pod, kubectl) => checkCopy(runner, pod, copyBytes(kubectl)),
    ...remoteCommand,
  },
  {
    name: "port-forward, 200 requests by 20",
    run: (runner, pod) => checkPortForward(runner, pod),
    webSocketSince: 31,
    planToSpdyNode: "tunnel",
  },
];

const nodes = [
  { node: "node-spdy", podName: "web", speaksWebSocket: false },
  { node: "node-ws", podName: "web-ws", speaksWebSocket: true },
];

describeReal("kubectl", "every kubectl through the demo's gateway", () => {
  const results: CheckResult[] = [];
  let demo: RunningDemo;
  let podFolder: string;

  beforeAll(async () => {
    podFolder = mkdtempSync(path.join(tmpdir(), "sluice-pod-"));
    demo = await startDemo();
  });
  afterAll(async () => {
    await demo?.stop();
    rmSync(podFolder, { recursive: true, force: true });
    if (isWritingDocs && results.length > 0) writeFileSync(document, documentText(results));
  });

  describe.each(kubectls())("$version", (kubectl) => {
    let runner: KubectlRunner;
    beforeAll(() => {
      runner = new KubectlRunner(kubectl, { kubeconfig: demo.kubeconfig });
    });
    afterAll(() => runner?.remove());

    describe.each(nodes)("to $node", ({ node, podName, speaksWebSocket }) => {
      it.each(checks)("$name", { timeout: 400_000 }, async (check) => {
        const pod = { name: podName, container: "main", folder: podFolder, httpPort: 80 };
        const plan = speaksWebSocket ? "pass-through" : check.planToSpdyNode;
        const expected = kubectl.minor >= check.webSocketSince ? `WebSocket ${plan}` : "SPDY pass-through";
        const result = {
          kubectl: kubectl.version,
          node,
          check: check.name,
          hasPassed: false,
          path: "?",
        };
        results.push(result);
        const readMetrics = async () =>
          parseMetrics(await (await fetch(new URL("metrics", demo.adminUrl))).text());
        const taken = await pathTakenBy(readMetrics, () => check.run(runner, pod, kubectl));
        result.path = taken.ways.join(" and ");
        // No refusal: the client did not have to come again in another protocol.
        expect(taken).toEqual({ ways: [expected], refusals: [] });
        result.hasPassed = true;
      });
    });
  });
});

function documentText(results: readonly CheckResult[]): string {
  const passed = results.filter((result) => result.hasPassed).length;
  return `# kubectl versions and paths

${passed} of ${results.length} checks passed: every kubectl, to nodes of both kinds. A cell is the path by the gateway's
metrics. The check fails if the path is not the expected one, or if kubectl had
to retry with another protocol.

| word | path |
|---|---|
| SPDY, WebSocket | passed through unchanged |
| translate | WebSocket v5 to SPDY |
| tunnel | SPDY in WebSocket messages to SPDY |

\`node-ws\` declares \`ExtendWebSocketsToKubelet\`, \`node-spdy\` nothing. \`cp\` copies 256 MiB of random bytes
in and out and compares SHA-256; port-forward carries each request over its own connection. Written by
\`SLUICE_WRITE_DOCS=1 npx vitest run test/real/kubectl-matrix\` with \`sluice demo\`, Node
${process.version.slice(1)}, Linux ${release()}.

${kubectlTable(
  results,
  checks.map((check) => check.name),
)}
`;
}
