import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { release, tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AgentProcess, startAgentProcess } from "../support/agent-process.ts";
import { NodeClient } from "../support/client-node-checks.ts";
import { evidenceTable } from "../support/evidence-table.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import {
  type CheckedPod,
  type CommandRunner,
  checkAttach,
  checkCopy,
  checkExec,
  checkPortForward,
  checkTerminal,
} from "../support/kubectl-checks.ts";
import { type Layer7Proxy, startHaproxy } from "../support/layer7-proxies.ts";
import { describeReal, isFullRun, kubectls } from "../support/real-parts.ts";
import { SluiceRunner } from "../support/sluice-runner.ts";
import { pathTakenBy } from "../support/taken-path.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

const MIB = 1024 * 1024;
const isWritingDocs = process.env.SLUICE_WRITE_DOCS === "1";
const document = path.resolve(import.meta.dirname, "../../docs/evidence/bridge-matrix.md");
const copyBytes = 16 * MIB;

const CHECKS = [
  "exec, piped stdin, exit code 7",
  "exec -it with resize",
  "attach",
  "cp in and out",
  "port-forward",
] as const;
type CheckName = (typeof CHECKS)[number];
type Checks = Readonly<Record<CheckName, () => Promise<void>>>;

/** What a client is expected to speak to the agent, for commands and for port-forward. */
interface BridgeClient {
  readonly name: string;
  readonly commandWay: AgentWay;
  readonly forwardWay: AgentWay;
  open(kubeconfig: string, pod: CheckedPod): { readonly checks: Checks; close(): void };
}

type AgentWay = "SPDY bridge" | "WebSocket bridge" | "WebSocket pass-through";

const kubectlReleases = [20, 27, 28, 31];
const newest = kubectls().at(-1);
const found = kubectls().filter((kubectl) => kubectlReleases.includes(kubectl.minor) || kubectl === newest);
const missing = kubectlReleases.filter(
  (minor) => isFullRun && !found.some((kubectl) => kubectl.minor === minor),
);

const clients: readonly BridgeClient[] = [
  ...found.map((kubectl): BridgeClient => {
    return {
      name: `kubectl ${kubectl.version}`,
      commandWay: kubectl.minor >= 30 ? "WebSocket pass-through" : "SPDY bridge",
      forwardWay: kubectl.minor >= 31 ? "WebSocket pass-through" : "SPDY bridge",
      open: (kubeconfig, pod) => {
        const runner = new KubectlRunner(kubectl, { kubeconfig });
        return { checks: checksOf(runner, pod), close: () => runner.remove() };
      },
    };
  }),
  {
    name: "@kubernetes/client-node",
    commandWay: "WebSocket pass-through",
    forwardWay: "WebSocket bridge",
    open: (kubeconfig, pod) => ({ checks: nodeChecksOf(new NodeClient(kubeconfig), pod), close: () => {} }),
  },
  {
    name: "@kubernetes/client-node held to v4",
    commandWay: "WebSocket bridge",
    forwardWay: "WebSocket bridge",
    open: (kubeconfig, pod) => ({
      checks: nodeChecksOf(new NodeClient(kubeconfig, "v4.channel.k8s.io"), pod),
      close: () => {},
    }),
  },
  {
    name: "sluice",
    commandWay: "WebSocket pass-through",
    forwardWay: "WebSocket pass-through",
    open: (kubeconfig, pod) => {
      const runner = new SluiceRunner(kubeconfig);
      return { checks: checksOf(runner, pod), close: () => runner.remove() };
    },
  },
];

function checksOf(runner: CommandRunner, pod: CheckedPod): Checks {
  return {
    "exec, piped stdin, exit code 7": () => checkExec(runner, pod),
    "exec -it with resize": () => checkTerminal(runner, pod),
    attach: () => checkAttach(runner, pod),
    "cp in and out": () => checkCopy(runner, pod, copyBytes),
    "port-forward": () => checkPortForward(runner, pod),
  };
}

function nodeChecksOf(client: NodeClient, pod: CheckedPod): Checks {
  return {
    "exec, piped stdin, exit code 7": () => client.checkExec(pod),
    "exec -it with resize": () => client.checkTerminal(pod),
    attach: () => client.checkAttach(pod),
    "cp in and out": () => client.checkCopy(pod, copyBytes),
    "port-forward": () => client.checkPortForward(pod),
  };
}

/** Client -> sluice agent -> HAProxy that refuses SPDY -> the API leg of a gateway -> a node that speaks SPDY. */
describeReal(["kubectl", "haproxy"], "the bridge matrix", () => {
  const rows = new Map<string, string[]>();
  const pod: CheckedPod = { name: "web", container: "main", folder: "", httpPort: 80 };
  let gateway: TestGateway;
  let hop: Layer7Proxy;
  let agent: AgentProcess;

  beforeAll(async () => {
    pod.folder = mkdtempSync(path.join(tmpdir(), "sluice-pod-"));
    gateway = await startTestGateway({ scheme: "http", fakeNodes: [{}] });
    hop = await startHaproxy(Number(new URL(gateway.apiServerUrl).port), true);
    agent = await startAgentProcess({ server: hop.url, authority: hop.authority, token: gateway.token });
  });
  afterAll(async () => {
    await agent?.stop();
    await hop?.stop();
    await gateway?.stop();
    rmSync(pod.folder, { recursive: true, force: true });
    if (isWritingDocs && rows.size > 0) writeFileSync(document, documentText(rows));
  });

  for (const minor of missing) it.skip(`kubectl 1.${minor} is not on this machine`, () => {});

  it("the hop refuses SPDY without the agent", async () => {
    const [oldest] = found;
    if (oldest === undefined) throw new Error("no kubectl");
    const direct = new KubectlRunner(oldest, { kubeconfig: gateway.kubeconfig });
    const server = ["--server", hop.url, "--insecure-skip-tls-verify"];
    const result = await direct.run([...server, "exec", pod.name, "--", "true"]);
    direct.remove();
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toMatch(/403|Forbidden|forbidden/);
  });

  describe.each(clients)("$name", (client) => {
    let opened: ReturnType<BridgeClient["open"]>;
    beforeAll(() => {
      opened = client.open(agent.kubeconfig, pod);
      rows.set(
        client.name,
        CHECKS.map(() => "**FAIL**"),
      );
    });
    afterAll(() => opened?.close());

    it.each(CHECKS)("%s", { timeout: 180_000 }, async (check) => {
      let far: Awaited<ReturnType<typeof pathTakenBy>> | undefined;
      const near = await pathTakenBy(agent.readMetrics, async () => {
        far = await pathTakenBy(gateway.readMetrics, async () => {
          await opened.checks[check]();
        });
      });
      const isForward = check === "port-forward";
      // No refusal on either side: nothing had to come again in another protocol.
      expect(near).toEqual({ ways: [isForward ? client.forwardWay : client.commandWay], refusals: [] });
      expect(far).toEqual({ ways: [`WebSocket ${isForward ? "tunnel" : "translate"}`], refusals: [] });
      const cells = rows.get(client.name) ?? [];
      cells[CHECKS.indexOf(check)] = near.ways[0] ?? "?";
    });
  });
});

function documentText(rows: ReadonlyMap<string, readonly string[]>): string {
  const cells = [...rows.values()].flat();
  const passed = cells.filter((cell) => cell !== "**FAIL**").length;
  const table = evidenceTable(
    ["client", ...CHECKS],
    Array.from(rows, ([name, row]) => [name, ...row]),
    [0],
  );
  const absent = missing.map((minor) => `1.${minor}`).join(", ");
  return `# Clients over the WebSocket bridge

${passed} of ${cells.length} checks passed through a hop that refuses SPDY: client, \`sluice agent\`, HAProxy (answers SPDY with
403), gateway, a node that speaks SPDY.${absent === "" ? "" : ` Not on this machine: kubectl ${absent}.`}

A cell is the agent's path by its metrics. Behind the hop the gateway always translates commands and
tunnels port-forward. Another path, or a refusal on either side, fails the check.

${table}

- \`cp\` copies ${copyBytes / MIB} MiB of random bytes in and out and compares them. client-node's \`cp\` cannot copy out;
  its files come back by \`exec\`.
- port-forward: 200 HTTP requests, 20 at a time, over one session; client-node: 40 by 10, a session each.
- client-node uses v5 for commands and the legacy WebSocket form for port-forward. "Held to v4" is its
  older releases, which close the session when the input ends; the command gets the size instead.

Written by \`SLUICE_WRITE_DOCS=1 npx vitest run test/real/bridge-matrix\` on Node ${process.version.slice(1)}, Linux
${release()}.
`;
}
