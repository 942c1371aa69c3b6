import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { KubectlRunner } from "../support/kubectl.ts";
import {
  checkAttach,
  checkCopy,
  checkExec,
  checkPortForward,
  checkTerminal,
} from "../support/kubectl-checks.ts";
import { type NodeGateway, startNodeGateway } from "../support/node-gateway.ts";
import { containerds, describeReal, kubectlSample } from "../support/real-parts.ts";
import { pathTakenBy } from "../support/taken-path.ts";
import { type RunningContainerd, startContainerd } from "./containerd/start-containerd.ts";
import { runWebPod, webPod } from "./containerd/web-pod.ts";

const MIB = 1024 * 1024;
const checks = [
  { name: "exec", run: checkExec, webSocketSince: 30 },
  { name: "exec -it", run: checkTerminal, webSocketSince: 30 },
  { name: "attach", run: checkAttach, webSocketSince: 30 },
  {
    name: "cp",
    run: (runner: KubectlRunner) => checkCopy(runner, webPod, 32 * MIB),
    webSocketSince: 30,
  },
  { name: "port-forward", run: checkPortForward, webSocketSince: 31 },
] as const;

describeReal(["containerd", "kubectl"], "kubectl through an API leg and a kubelet leg to containerd", () => {
  describe.each(containerds())("containerd $version", (binaries) => {
    let containerd: RunningContainerd;
    let obstacle: string | undefined;
    beforeAll(async () => {
      try {
        containerd = await startContainerd(binaries);
      } catch (error) {
        if (binaries.isInstalled) throw error;
        obstacle = `containerd ${binaries.version} does not start on this release: ${(error as Error).message}`;
        return;
      }
      await runWebPod(containerd);
    });
    beforeEach((context) => {
      context.skip(obstacle !== undefined, obstacle);
    });
    afterAll(() => containerd?.stop());

    describe.each(["one process", "two processes"] as const)("%s", (legs) => {
      let gateway: NodeGateway;
      beforeAll(async () => {
        if (containerd) {
          const { socket } = containerd;
          gateway = await startNodeGateway({
            socket,
            legs,
            pods: [webPod],
            declaredFeatures: ["ExtendWebSocketsToKubelet"],
          });
        }
      });
      afterAll(() => gateway?.stop());

      describe.each(kubectlSample().slice(binaries.isInstalled ? 0 : -1))("kubectl $version", (kubectl) => {
        let runner: KubectlRunner;
        beforeAll(() => {
          if (gateway) runner = new KubectlRunner(kubectl, { kubeconfig: gateway.kubeconfig });
        });
        afterAll(() => runner?.remove());

        it.each(checks)("$name", async ({ run, webSocketSince }) => {
          const expected = kubectl.minor >= webSocketSince ? "WebSocket pass-through" : "SPDY pass-through";
          const taken = await pathTakenBy(gateway.readApiMetrics, () => run(runner, webPod));
          expect(taken).toEqual({ ways: [expected], refusals: [] });
        });
      });
    });
  });
});
