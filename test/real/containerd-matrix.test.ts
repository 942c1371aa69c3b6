import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { KubectlRunner } from "../support/kubectl.ts";
import {
  checkAttach,
  checkCopy,
  checkExec,
  checkPortForward,
  checkTerminal,
} from "../support/kubectl-checks.ts";
import { describeReal, kubectlSample, oldestAndNewest } from "../support/real-parts.ts";
import { pathTakenBy } from "../support/taken-path.ts";
import type { TestGateway } from "../support/test-gateway.ts";
import { INDEX_PAGE } from "./containerd/busybox-images.ts";
import { type ContainerdGateway, startContainerdGateway } from "./containerd/containerd-gateway.ts";
import { describeEachContainerd } from "./containerd/each-containerd.ts";
import { webPod } from "./containerd/web-pod.ts";

const MIB = 1024 * 1024;
const checks = [
  { name: "exec", run: checkExec, webSocketSince: 30, plan: "translate" },
  { name: "exec -it", run: checkTerminal, webSocketSince: 30, plan: "translate" },
  { name: "attach", run: checkAttach, webSocketSince: 30, plan: "translate" },
  {
    name: "cp of 32 MiB",
    run: (runner: KubectlRunner) => checkCopy(runner, webPod, 32 * MIB),
    webSocketSince: 30,
    plan: "translate",
  },
  { name: "port-forward", run: checkPortForward, webSocketSince: 31, plan: "tunnel" },
] as const;

describeReal(
  ["containerd", "kubectl"],
  "kubectl through the gateway to containerd's streaming server",
  () => {
    describeEachContainerd((running, binaries) => {
      let gateway: ContainerdGateway;

      beforeAll(async () => {
        const containerd = running();
        if (containerd !== undefined) gateway = await startContainerdGateway(containerd);
      });
      afterAll(() => gateway?.stop());

      // The installed daemon meets every kind of kubectl; the others differ in the daemon alone.
      describe.each(
        oldestAndNewest(kubectlSample().slice(binaries.isInstalled ? 0 : -1)),
      )("kubectl $version", (kubectl) => {
        let runner: KubectlRunner;
        beforeAll(() => {
          if (gateway) runner = new KubectlRunner(kubectl, { kubeconfig: gateway.kubeconfig });
        });
        afterAll(() => runner?.remove());

        it.each(checks)("$name", async ({ run, webSocketSince, plan }) => {
          const expected = kubectl.minor >= webSocketSince ? `WebSocket ${plan}` : "SPDY pass-through";
          const taken = await pathTakenBy(gateway.readMetrics, () => run(runner, webPod));
          expect(taken).toEqual({ ways: [expected], refusals: [] });
        });
      });

      it("every session reached the node as SPDY, which is what it speaks", () => {
        expect(gateway.nodeUpgrades.length).toBeGreaterThan(0);
        expect([...new Set(gateway.nodeUpgrades)].sort()).toEqual([
          "POST SPDY/3.1 attach",
          "POST SPDY/3.1 exec",
          "POST SPDY/3.1 portForward",
        ]);
      });

      // containerd answers these itself; the gateway only relays them.
      it.each([
        "v4.channel.k8s.io",
        "channel.k8s.io",
      ])("exec over WebSocket %s passes through", async (protocol) => {
        const query =
          "command=sh&command=-c&command=echo+out%3B+echo+err+>%262%3B+exit+7&stdout=true&stderr=true";
        const { channels, closeCode } = await converse(gateway, `exec?${query}`, protocol);
        expect(channels.get(1)).toBe("out\n");
        expect(channels.get(2)).toBe("err\n");
        expect(channels.get(3)).toContain("7");
        expect(closeCode).toBe(1000);
      });

      it("port-forward over the legacy WebSocket passes through", async () => {
        const request = Buffer.from("GET / HTTP/1.0\r\n\r\n");
        const { channels } = await converse(gateway, "portforward?ports=80", "v4.channel.k8s.io", request);
        expect(channels.get(0)).toContain(INDEX_PAGE);
      });
    });
  },
);

interface Conversation {
  /** What came on each channel, as text. */
  channels: ReadonlyMap<number, string>;
  closeCode: number;
}

/** Opens a WebSocket to the pod's subresource, sends `input` on channel 0, and gathers what comes until it closes. */
function converse(
  gateway: TestGateway,
  resource: string,
  protocol: string,
  input?: Buffer,
): Promise<Conversation> {
  const url = `${gateway.apiServerUrl}/api/v1/namespaces/default/pods/${webPod.name}/${resource}`;
  const headers = { authorization: `Bearer ${gateway.token}` };
  const socket = new WebSocket(url, protocol, { headers, rejectUnauthorized: false });
  const channels = new Map<number, string>();
  socket.on("open", () => {
    if (input) socket.send(Buffer.concat([Buffer.from([0]), input]));
  });
  socket.on("message", (message: Buffer) => {
    const channel = message[0] ?? -1;
    channels.set(channel, (channels.get(channel) ?? "") + message.subarray(1).toString());
  });
  return new Promise((resolve, reject) => {
    socket.on("error", reject);
    socket.on("close", (closeCode) => resolve({ channels, closeCode }));
  });
}
