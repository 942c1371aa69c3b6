import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { connectHttp2, openWebSocket } from "../support/http2-client.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import {
  checkAttach,
  checkCopy,
  checkExec,
  checkPortForward,
  checkTerminal,
} from "../support/kubectl-checks.ts";
import { checkExitCodes, checkLogs, nodePlans } from "../support/node-checks.ts";
import { NODE_NAME, type NodeGateway, startNodeGateway } from "../support/node-gateway.ts";
import { describeReal, isFullRun, kubectlSample, oldestAndNewest } from "../support/real-parts.ts";
import { pathTakenBy } from "../support/taken-path.ts";
import { V5Client } from "../support/v5-client.ts";
import { describeEachContainerd } from "./containerd/each-containerd.ts";
import { runWebPod, webPod } from "./containerd/web-pod.ts";

/** Every kubectl of the sample with every containerd in one process and in two, and 256 MiB each way, instead of a choice of them. */
const isWhole = process.env.SLUICE_SOAK === "1" || isFullRun;
const MIB = 1024 * 1024;
const checks = [
  { name: "exec", run: checkExec, webSocketSince: 30, plan: "translate" },
  { name: "exit codes", run: checkExitCodes, webSocketSince: 30, plan: "translate" },
  { name: "exec -it", run: checkTerminal, webSocketSince: 30, plan: "translate" },
  { name: "attach", run: checkAttach, webSocketSince: 30, plan: "translate" },
  { name: "port-forward", run: checkPortForward, webSocketSince: 31, plan: "tunnel" },
] as const;

describeReal(["containerd", "kubectl"], "kubectl through an API leg and a kubelet leg to containerd", () => {
  describeEachContainerd((running, binaries) => {
    beforeAll(async () => {
      const containerd = running();
      if (containerd !== undefined) await runWebPod(containerd);
    });

    const everyLegs = ["one process", "two processes"] as const;
    describe.each(everyLegs.slice(binaries.isInstalled || isWhole ? 0 : -1))("%s", (legs) => {
      let gateway: NodeGateway;
      beforeAll(async () => {
        const containerd = running();
        if (containerd === undefined) return;
        const { socket } = containerd;
        const declaredFeatures = ["ExtendWebSocketsToKubelet"];
        gateway = await startNodeGateway({ socket, legs, pods: [webPod], declaredFeatures });
      });
      afterAll(() => gateway?.stop());

      // The installed daemon meets every kind of kubectl; the others differ in the daemon alone.
      describe.each(
        oldestAndNewest(kubectlSample().slice(binaries.isInstalled || isWhole ? 0 : -1)),
      )("kubectl $version", (kubectl) => {
        let runner: KubectlRunner;
        beforeAll(() => {
          if (gateway) runner = new KubectlRunner(kubectl, { kubeconfig: gateway.kubeconfig });
        });
        afterAll(() => runner?.remove());

        it.each(checks)("$name", async ({ run, webSocketSince, plan }) => {
          const isWebSocket = kubectl.minor >= webSocketSince;
          const before = await gateway.readNodeMetrics();
          const taken = await pathTakenBy(gateway.readApiMetrics, () => run(runner, webPod));
          const way = isWebSocket ? "WebSocket pass-through" : "SPDY pass-through";
          expect(taken).toEqual({ ways: [way], refusals: [] });
          const after = await gateway.readNodeMetrics();
          expect(nodePlans(before, after)).toEqual([isWebSocket ? plan : "pass-through"]);
          const name = `kubelet_websocket_streaming_requests_total{subresource="${plan === "tunnel" ? "portforward" : run === checkAttach ? "attach" : "exec"}"}`;
          expect((after.get(name) ?? 0) > (before.get(name) ?? 0)).toBe(isWebSocket);
        });

        it("cp both ways", async () => {
          // Once through everything at a larger size; the rest shows that each combination copies.
          const isLarge = binaries.isInstalled && legs === "two processes";
          await checkCopy(runner, webPod, (isWhole ? 256 : isLarge ? 64 : 16) * MIB);
        });

        it("logs", () => checkLogs(runner, webPod));

        it("a client that is gone takes its process along, or at least its stdin", async () => {
          const run = (script: string) =>
            runner.run(["exec", webPod.name, "-c", webPod.container, "--", "sh", "-c", script]);
          await run("rm -f /tmp/pid /tmp/closed");
          const script = "echo $$ > /tmp/pid; cat > /dev/null; touch /tmp/closed; exec sleep 600";
          const child = runner.start([
            "exec",
            "-i",
            webPod.name,
            "-c",
            webPod.container,
            "--",
            "sh",
            "-c",
            script,
          ]);
          await eventually("it runs", async () => (await run("test -s /tmp/pid")).exitCode === 0, {
            timeoutMs: 20_000,
          });
          child.kill("SIGKILL");
          const isKilledWithClient = Number(binaries.version.split(".")[0]) >= 2;
          // Up to 1.7 containerd lets the process live on; it is told by the end of its stdin.
          const proof = isKilledWithClient ? "! kill -0 $(cat /tmp/pid) 2>/dev/null" : "test -e /tmp/closed";
          await eventually("it has heard", async () => (await run(proof)).exitCode === 0, {
            timeoutMs: 20_000,
          });
          await run("kill -9 $(cat /tmp/pid) 2>/dev/null; true");
        });
      });

      it("takes WebSockets over HTTP/2 from who shows a certificate: exec with input and an exit code", async () => {
        const { cert, key, ca } = gateway.client;
        const session = await connectHttp2(gateway.kubeletUrl, { cert, key, ca });
        try {
          const query = "command=sh&command=-c&command=cat%3B%20exit%207&input=1&output=1&error=1";
          const path = `/exec/default/${webPod.name}/${webPod.container}?${query}`;
          const opened = await openWebSocket(session, path, {
            "sec-websocket-protocol": "v5.channel.k8s.io",
          });
          if ("status" in opened) throw new Error(`refused with ${opened.status}: ${opened.body}`);
          const client = new V5Client(opened.socket);
          client.send(0, "over one stream");
          client.closeStdin();
          const { stdout, status, closeCode } = await client.done;
          expect(stdout.toString()).toBe("over one stream");
          expect(status).toContain('"7"');
          expect(closeCode).toBe(1000);
        } finally {
          session.destroy();
        }
      });

      it("lists the pod and counts what it uses", async () => {
        const { client, kubeletUrl } = gateway;
        const get = async (path: string) =>
          JSON.parse(await fetchWithCertificate(`${kubeletUrl}${path}`, client));
        const { items } = await get("/pods");
        expect(items).toMatchObject([{ metadata: { name: webPod.name }, status: { phase: "Running" } }]);
        const summary = await get("/stats/summary");
        expect(summary.node.nodeName).toBe(NODE_NAME);
        expect(summary.pods[0].containers[0]).toMatchObject({
          name: webPod.container,
          memory: { workingSetBytes: expect.any(Number) },
        });
      });
    });
  });
});

async function fetchWithCertificate(url: string, { cert, key, ca }: NodeGateway["client"]): Promise<string> {
  const { get } = await import("node:https");
  return new Promise((resolve, reject) => {
    get(url, { cert, key, ca }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on("end", () => resolve(text));
    }).on("error", reject);
  });
}
