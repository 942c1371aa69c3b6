import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseYamlDocuments } from "../../packages/client/src/config/yaml-documents.ts";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { FrontDoor, ingressObject } from "../support/front-door.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import {
  type CheckedPod,
  checkCopy,
  checkExec,
  checkPortForward,
  checkTerminal,
} from "../support/kubectl-checks.ts";
import { type Layer7Proxy, startHaproxy, startNginx } from "../support/layer7-proxies.ts";
import { describeReal, kubectlSample, kubectls } from "../support/real-parts.ts";

const MIB = 1024 * 1024;

/*
 * kubectl -> (another L7 gateway ->) Sluice's Ingress -> the API leg of a cluster, named by a StreamingGateway backend under
 * /clusters/a. The demo is the cluster.
 */
describeReal(["kubectl", "nginx", "haproxy"], "kubectl through the front door", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-front-"));
  const proxies: Layer7Proxy[] = [];
  let demo: RunningDemo;
  let door: FrontDoor;
  let token: string;
  const urls = new Map<string, string>();

  beforeAll(async () => {
    demo = await startDemo();
    const [document] = parseYamlDocuments(readFileSync(demo.kubeconfig, "utf8"), demo.kubeconfig);
    const { clusters, users } = document?.value as {
      clusters: { cluster: { server: string; "certificate-authority-data": string } }[];
      users: { user: { token: string } }[];
    };
    const cluster = clusters[0]?.cluster;
    token = users[0]?.user.token ?? "";
    const authority = path.join(folder, "demo-ca.crt");
    writeFileSync(authority, Buffer.from(cluster?.["certificate-authority-data"] ?? "", "base64"));
    const target = { name: "a", url: cluster?.server, certificateAuthorityFile: authority };
    const path_ = {
      path: "/clusters/a",
      pathType: "Prefix",
      backend: { resource: { apiGroup: "sluice.dev", kind: "StreamingGateway", name: "a" } },
    };
    door = await FrontDoor.start([ingressObject("clusters", { rules: [{ http: { paths: [path_] } }] })], {
      streamingGateways: [target],
    });
    const nginx = await startNginx(door.httpPort);
    const haproxy = await startHaproxy(door.httpPort);
    const webSocketsOnly = await startHaproxy(door.httpPort, true);
    proxies.push(nginx, haproxy, webSocketsOnly);
    urls.set("Sluice Ingress", `https://127.0.0.1:${door.httpsPort}`);
    urls.set("nginx, Sluice Ingress", nginx.url);
    urls.set("HAProxy, Sluice Ingress", haproxy.url);
    urls.set("HAProxy without SPDY, Sluice Ingress", webSocketsOnly.url);
  });

  afterAll(async () => {
    await Promise.all(proxies.map((proxy) => proxy.stop()));
    await door?.stop();
    await demo?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function runnerOf(kubectl: ReturnType<typeof kubectls>[number], way: string): KubectlRunner {
    const kubeconfig = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "door",
      clusters: [
        {
          name: "door",
          cluster: { server: `${urls.get(way)}/clusters/a`, "insecure-skip-tls-verify": true },
        },
      ],
      users: [{ name: "door", user: { token } }],
      contexts: [{ name: "door", context: { cluster: "door", user: "door", namespace: "default" } }],
    };
    const file = path.join(folder, `${way.replaceAll(/\W/g, "-")}.json`);
    writeFileSync(file, JSON.stringify(kubeconfig), { mode: 0o600 });
    return new KubectlRunner(kubectl, { kubeconfig: file });
  }

  const ways = ["Sluice Ingress", "nginx, Sluice Ingress", "HAProxy, Sluice Ingress"];
  const pods = ["web", "web-ws"];

  describe.each(ways)("%s", (way) => {
    it.each(kubectlSample())("kubectl $version: exec, a terminal, cp and port-forward", async (kubectl) => {
      const runner = runnerOf(kubectl, way);
      const podFolder = mkdtempSync(path.join(folder, "pod-"));
      for (const name of pods) {
        const pod: CheckedPod = { name, container: "main", folder: podFolder, httpPort: 80 };
        await checkExec(runner, pod);
        await checkCopy(runner, pod, 16 * MIB);
        await checkPortForward(runner, pod);
      }
      await checkTerminal(runner, { name: "web", container: "main", folder: podFolder, httpPort: 80 });
      expect((await runner.run(["get", "pods"])).stdout).toContain("web-ws");
    });
  });

  describe("where SPDY is refused", () => {
    const way = "HAProxy without SPDY, Sluice Ingress";

    it("the newest kubectl does not notice", async () => {
      const [kubectl] = kubectlSample().slice(-1);
      if (kubectl === undefined) throw new Error("no kubectl");
      const runner = runnerOf(kubectl, way);
      const pod = {
        name: "web",
        container: "main",
        folder: mkdtempSync(path.join(folder, "pod-")),
        httpPort: 80,
      };
      await checkExec(runner, pod);
      await checkCopy(runner, pod, 16 * MIB);
      await checkPortForward(runner, pod);
    });

    it("an old kubectl is told by the hop, and Sluice hears nothing of it", async () => {
      const old = kubectls().findLast(({ minor }) => minor < 29);
      if (old === undefined) return;
      const result = await runnerOf(old, way).run(["exec", "web", "-c", "main", "--", "true"]);
      expect(result.exitCode).not.toBe(0);
      expect(result.stderr).toMatch(/403|Forbidden/);
    });
  });

  it("a wrong token is refused by the cluster's own gateway, through all of it", async () => {
    const [kubectl] = kubectlSample().slice(-1);
    if (kubectl === undefined) throw new Error("no kubectl");
    const before = token;
    token = "wrong";
    try {
      const result = await runnerOf(kubectl, "Sluice Ingress").run([
        "exec",
        "web",
        "-c",
        "main",
        "--",
        "true",
      ]);
      expect(result.exitCode).not.toBe(0);
      expect(result.stderr).toMatch(/[Uu]nauthorized|logged in/);
    } finally {
      token = before;
    }
  });

  it("the path is in the metrics: tunnels went through the front door", async () => {
    const metrics = await door.readMetrics();
    expect(metrics.get('sluice_ingress_requests_total{protocol="http/1.1",code="101"}')).toBeGreaterThan(20);
  });
});
