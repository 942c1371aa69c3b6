import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type CriNodeAdapter, startCriNodeAdapter } from "../../support/cri-node-adapter.ts";
import { type FakeApiServer, startFakeApiServer } from "../../support/fake-api-server.ts";
import { KubectlRunner } from "../../support/kubectl.ts";
import {
  checkAttach,
  checkCopy,
  checkExec,
  checkPortForward,
  checkTerminal,
} from "../../support/kubectl-checks.ts";
import { containerds, describeReal, kubectlSample } from "../../support/real-parts.ts";
import { type RunningContainerd, startContainerd } from "./start-containerd.ts";
import { runWebPod, webPod } from "./web-pod.ts";

const MIB = 1024 * 1024;

// No gateway here: whatever fails in this file is the test's own node side, kubectl's or containerd's doing.
describeReal(["containerd", "kubectl"], "the adapter that puts containerd behind kubelet routes", () => {
  let containerd: RunningContainerd;
  let node: CriNodeAdapter;
  let apiServer: FakeApiServer;

  beforeAll(async () => {
    const [installed] = containerds();
    if (!installed) throw new Error("no containerd");
    containerd = await startContainerd(installed);
    node = await startCriNodeAdapter({ cri: containerd.cri, pods: [await runWebPod(containerd)] });
    apiServer = await startFakeApiServer({ name: webPod.name, container: webPod.container }, node);
  });
  afterAll(async () => {
    await apiServer?.close();
    await node?.close();
    await containerd?.stop();
  });

  describe.each(kubectlSample())("kubectl $version", (kubectl) => {
    let runner: KubectlRunner;
    beforeAll(() => {
      runner = new KubectlRunner(kubectl, { url: apiServer.url });
    });
    afterAll(() => runner?.remove());

    it("exec", () => checkExec(runner, webPod));
    it("exec -it", () => checkTerminal(runner, webPod));
    it("attach", () => checkAttach(runner, webPod));
    it("cp", () => checkCopy(runner, webPod, 4 * MIB));
    it("port-forward", () => checkPortForward(runner, webPod));
  });

  it("newer kubectls were refused their WebSocket by containerd and came again over SPDY", () => {
    expect(node.upgrades).toContain("POST SPDY/3.1 exec");
    const newest = kubectlSample().at(-1);
    if (newest && newest.minor >= 30) expect(node.upgrades).toContain("GET websocket exec");
  });

  it("answers what it cannot do with the kubelet's codes", async () => {
    const upgrade = (path: string) => upgradeStatus(node.port, path);
    expect(await upgrade("/exec/default/nobody/main?output=1&command=true")).toBe(404);
    expect(await upgrade("/exec/default/web/nobody?output=1&command=true")).toBe(404);
    expect(await upgrade("/exec/default/web/main?command=true")).toBe(400);
    expect((await fetch(`http://127.0.0.1:${node.port}/exec/default/web/main`)).status).toBe(500);
  });
});

function upgradeStatus(port: number, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = {
      connection: "Upgrade",
      upgrade: "SPDY/3.1",
      "x-stream-protocol-version": "v4.channel.k8s.io",
    };
    request({ host: "127.0.0.1", port, path, method: "POST", headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on("error", reject)
      .end();
  });
}
