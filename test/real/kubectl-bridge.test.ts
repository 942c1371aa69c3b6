import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FakeNode } from "../../packages/lab/src/fake-node/fake-node.ts";
import { runWebNode } from "../support/fake-nodes.ts";
import { webOn } from "../support/gateway-files.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import {
  type CheckedPod,
  checkAttach,
  checkCopy,
  checkExec,
  checkPortForward,
  checkTerminal,
} from "../support/kubectl-checks.ts";
import { type Layer7Proxy, startHaproxy } from "../support/layer7-proxies.ts";
import { type NodeGateway, startNodeGateway } from "../support/node-gateway.ts";
import { containerds, describeReal, kubectlSample, kubectls } from "../support/real-parts.ts";
import type { Kubectl } from "../support/real-parts-finder.ts";
import { type MetricSamples, pathTakenBy } from "../support/taken-path.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";
import { type RunningContainerd, startContainerd } from "./containerd/start-containerd.ts";
import { runWebPod, webPod } from "./containerd/web-pod.ts";

const MIB = 1024 * 1024;

/** `webSocketSince`: the first minor release of kubectl that comes over WebSocket unless told otherwise. */
const checks = [
  { name: "exec, piped stdin, exit code 7", webSocketSince: 30, run: checkExec },
  { name: "exec -it with resize", webSocketSince: 30, run: checkTerminal },
  { name: "attach", webSocketSince: 30, run: checkAttach },
  {
    name: "cp in and out",
    webSocketSince: 30,
    run: (runner: KubectlRunner, pod: CheckedPod) => checkCopy(runner, pod, 32 * MIB),
  },
  {
    name: "port-forward, 200 requests by 20",
    webSocketSince: 31,
    run: (runner: KubectlRunner, pod: CheckedPod) => checkPortForward(runner, pod),
  },
];

const sample = () => {
  const of31 = kubectls().filter(({ minor }) => minor === 31);
  return [...new Set([...kubectlSample(), ...of31])];
};

/** One kubectl against one kind of far end, each check by its one way. */
function eachCheck(kubectl: Kubectl, stage: () => Stage): void {
  let runner: KubectlRunner;
  beforeAll(() => {
    runner = new KubectlRunner(kubectl, { kubeconfig: stage().kubeconfig });
  });
  afterAll(() => runner?.remove());

  it.each(checks)("$name", { timeout: 400_000 }, async ({ webSocketSince, run }) => {
    const { pod, readMetrics } = stage();
    const taken = await pathTakenBy(readMetrics, () => run(runner, pod));
    const way = kubectl.minor >= webSocketSince ? "WebSocket pass-through" : "SPDY bridge";
    expect(taken).toEqual({ ways: [way], refusals: [] });
  });
}

interface Stage {
  readonly kubeconfig: string;
  readonly pod: CheckedPod;
  readMetrics(): Promise<MetricSamples>;
}

describeReal(["kubectl", "haproxy"], "kubectl to a node behind a hop that refuses SPDY", () => {
  let gateway: TestGateway;
  let hop: Layer7Proxy;
  let node: FakeNode;
  let podFolder: string;

  beforeAll(async () => {
    podFolder = mkdtempSync(path.join(tmpdir(), "sluice-pod-"));
    node = await runWebNode({ declaresWebSockets: true });
    hop = await startHaproxy(node.port, true);
    gateway = await startTestGateway({
      ...webOn(Number(new URL(hop.url).port)),
      kubeletAuthority: hop.authority,
      kubelet: { streaming: { nodes: { node: "websocket-only" } } },
    });
  });
  afterAll(async () => {
    await gateway?.stop();
    await hop?.stop();
    await node?.close();
    rmSync(podFolder, { recursive: true, force: true });
  });

  const stage = () => ({
    ...gateway,
    pod: { name: "web", container: "main", folder: podFolder, httpPort: 80 },
  });
  describe.each(sample())("$version", (kubectl) => eachCheck(kubectl, stage));
});

describeReal(
  ["kubectl", "containerd"],
  "kubectl to a second Sluice in front of containerd, by WebSocket alone",
  () => {
    let containerd: RunningContainerd | undefined;
    let gateway: NodeGateway | undefined;

    beforeAll(async () => {
      const [oldest] = containerds();
      if (oldest === undefined) throw new Error("no containerd");
      containerd = await startContainerd(containerds().find(({ isInstalled }) => isInstalled) ?? oldest);
      await runWebPod(containerd);
      gateway = await startNodeGateway({
        socket: containerd.socket,
        legs: "two processes",
        pods: [{ name: webPod.name, container: webPod.container }],
        kubelet: { streaming: { mode: "websocket-only" } },
      });
    });
    afterAll(async () => {
      await gateway?.stop();
      await containerd?.stop();
    });

    const stage = (): Stage => {
      if (gateway === undefined) throw new Error("no gateway");
      return { kubeconfig: gateway.kubeconfig, readMetrics: gateway.readApiMetrics, pod: webPod };
    };
    const [oldest] = kubectls();
    if (oldest !== undefined) describe(oldest.version, () => eachCheck(oldest, stage));
  },
);
