import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { CoreV1Api, Exec, KubeConfig, Log, type V1Status, Watch } from "@kubernetes/client-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../../packages/client/src/net/self-signed.ts";
import type { FakeNode } from "../../../../packages/lab/src/fake-node/fake-node.ts";
import { runFakeNode } from "../../../../packages/lab/src/fake-node/run-fake-node.ts";
import type { Node } from "../../../../src/api/objects.ts";
import type { Caller } from "../../../support/api-server/callers.ts";
import { resourceOfKind } from "../../../support/api-server/resources.ts";
import { TestApiServer } from "../../../support/api-server/test-api-server.ts";
import { eventually } from "../../../support/eventually.ts";
import { collect, KubectlRunner } from "../../../support/kubectl.ts";
import { rawExchange } from "../../../support/raw-tls.ts";
import { describeReal, kubectlSample } from "../../../support/real-parts.ts";
import { issueCertificate } from "../../../support/test-certificates.ts";
import { startTestGateway, type TestGateway } from "../../../support/test-gateway.ts";

const GATEWAY_TOKEN = "the-gateways-own";

describe.each([
  "caller",
  "impersonate",
])("a gateway in front of a live API, forwarding as %s", (forwardAs) => {
  const tokens: Record<string, Caller> = { [GATEWAY_TOKEN]: { username: "sluice", groups: [] } };
  const config = new KubeConfig();
  let folder: string;
  let node: FakeNode;
  let server: TestApiServer;
  let gateway: TestGateway;
  let api: CoreV1Api;

  const pod = (name: string) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: { nodeName: "node", containers: [{ name: "main", image: "i", env: [{ name: "A", value: "b" }] }] },
    status: { phase: "Running" },
  });
  const rbac = (kind: string, name: string, more: object) => ({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind,
    metadata: { name },
    ...more,
  });

  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "sluice-live-gateway-"));
    const nodeTls = await createSelfSignedCertificate();
    const command = ["/bin/sh", "-c", "exec cat"];
    node = await runFakeNode({
      name: "node",
      declaresWebSockets: true,
      tls: nodeTls,
      pods: ["web", "late"].map((name) => ({
        namespace: "default",
        name,
        uid: name,
        containers: [{ name: "main", command }],
      })),
    });
    const tls = await issueCertificate({ commonName: "api" }, undefined, { addresses: ["127.0.0.1"] });
    server = await TestApiServer.start({ tokens, tls });
    server.apply(pod("web"));
    server.apply({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "node" },
      status: {
        addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
        daemonEndpoints: { kubeletEndpoint: { Port: node.port } },
        declaredFeatures: ["Another"],
      },
    });
    server.apply(
      rbac("ClusterRole", "may-exec", { rules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }] }),
    );
    const kubeconfig = await server.writeKubeconfig(path.join(folder, "kubeconfig"), GATEWAY_TOKEN);
    gateway = await startTestGateway({
      kubeletAuthority: nodeTls.certPem,
      configuration: {
        cluster: { kubeconfig, forwardAs, publishDeclaredFeatures: { nodes: ["node"] } },
        authorization: { mode: ["RBAC"] },
      },
    });
    tokens[gateway.token] = { username: "tester", groups: ["from-the-api"] };
    config.loadFromFile(gateway.kubeconfig);
    api = config.makeApiClient(CoreV1Api);
    await eventually("the gateway is ready", async () => (await readiness()).startsWith("[+]cluster ok"));
  });
  afterAll(async () => {
    // A connection that is kept for further requests would keep the process, too.
    await api?.listNamespacedPod({ namespace: "default" });
    await gateway?.stop();
    await eventually("no connection to the API is left", () => server.connections === 0, {
      timeoutMs: 2_000,
    });
    await server?.stop();
    await node?.close();
    await rm(folder, { recursive: true, force: true });
  });

  const readiness = async () => (await fetch(new URL("/readyz?verbose", gateway.adminUrl))).text();
  /** What it printed, or the HTTP status that refused it. */
  const exec = (name: string) =>
    new Promise<string>((resolve, reject) => {
      const stdout = new PassThrough();
      const done = (status: V1Status) => resolve(`${status.status} ${String(stdout.read()).trim()}`);
      new Exec(config)
        .exec("default", name, "main", ["echo", "hello"], stdout, null, null, false, done)
        .catch(({ message }: Error) => (message ? resolve(message) : reject(new Error("no message"))));
    });

  it("decides by the live API's RBAC, and by its changes", async () => {
    expect(await exec("web")).toMatch(/403/);
    server.apply(
      rbac("ClusterRoleBinding", "b", {
        roleRef: { kind: "ClusterRole", name: "may-exec" },
        subjects: [{ kind: "User", name: "tester" }],
      }),
    );
    await eventually("it may", async () => (await exec("web")) === "Success hello");
  });

  it("forwards what is not streaming, in the right name", async () => {
    const { items } = await api.listNamespacedPod({ namespace: "default" });
    // Whole objects, of which the gateway itself keeps a part.
    expect(items[0]?.spec?.containers[0]?.env).toEqual([{ name: "A", value: "b" }]);
    const request = server.requests.findLast(({ path }) => path === "/api/v1/namespaces/default/pods");
    expect(request?.caller?.username).toBe("tester");
    expect(request?.caller?.groups).toEqual(
      forwardAs === "caller" ? ["from-the-api"] : ["dev", "ops", "system:authenticated"],
    );
  });

  it("relays what the API server answers to an upgrade that it ignores", async () => {
    const { host } = new URL(config.getCurrentCluster()?.server ?? "");
    const head = [
      "GET /api/v1/namespaces/default/pods/web HTTP/1.1",
      `Host: ${host}`,
      `Authorization: Bearer ${gateway.token}`,
      "Connection: Upgrade",
      "Upgrade: websocket",
    ];
    const ca = Buffer.from(config.getCurrentCluster()?.caData ?? "", "base64").toString();
    expect((await rawExchange(host, ca, `${head.join("\r\n")}\r\n\r\n`)).status).toBe(200);
  });

  it("passes watch events on one by one", async () => {
    const seen: string[] = [];
    const watch = await new Watch(config).watch(
      "/api/v1/namespaces/default/configmaps",
      {},
      (_type, { metadata }: { metadata: { name: string } }) => seen.push(metadata.name),
      () => {},
    );
    const configMap = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });
    for (const name of ["a", "b", "c"]) {
      server.apply(configMap(name));
      await eventually(`${name} alone`, () => seen.at(-1) === name);
    }
    expect(seen).toEqual(["a", "b", "c"]);
    watch.abort();
  });

  it("follows logs as they are written, to their end", async () => {
    const text = new PassThrough();
    await new Log(config).log("default", "web", "main", text, { follow: true });
    await eventually("it is followed", () => server.logs.followers === 1);
    for (const line of ["one\n", "two\n"]) {
      server.logs.append("default", "web", line);
      await eventually(line, () => String(text.read()) === line);
    }
    server.logs.end("default", "web");
    await eventually("its end", () => server.logs.followers === 0);
  });

  describeReal("kubectl", "kubectl", () => {
    it.each(
      kubectlSample().map((kubectl) => [kubectl.version, kubectl] as const),
    )("%s gets, watches and follows logs through the gateway", async (_, kubectl) => {
      const runner = new KubectlRunner(kubectl, { kubeconfig: gateway.kubeconfig });
      const name = `log-${kubectl.version.replaceAll(".", "-")}`;
      server.apply(pod(name));
      const logs = runner.start(["logs", "-f", name]);
      const watch = runner.start(["get", "configmaps", "-w", "-o", "name"]);
      const [text, seen] = [collect(logs.stdout), collect(watch.stdout)];
      try {
        await eventually("it is followed", () => server.logs.followers === 1);
        for (const line of ["one\n", "two\n"]) {
          server.logs.append("default", name, line);
          await eventually(line, () => text().endsWith(line));
        }
        server.logs.end("default", name);
        await eventually("its end", () => logs.exitCode === 0);
        // It lists first and watches then; what comes once it watches must come at once.
        await eventually("the watch shows a change", () => {
          server.apply({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });
          return seen().includes(`configmap/${name}\n`);
        });
        const { stdout } = await runner.run([
          "get",
          "pod",
          name,
          "-o",
          "jsonpath={.spec.containers[0].env[0].value}",
        ]);
        expect([text(), stdout]).toEqual(["one\ntwo\n", "b"]);
      } finally {
        for (const child of [logs, watch]) child.kill("SIGKILL");
        runner.remove();
      }
    });
  });

  it("keeps sessions through a restart of the API, 410 and 429", async () => {
    const [stdin, stdout] = [new PassThrough(), new PassThrough()];
    let status: V1Status | undefined;
    await new Exec(config).exec("default", "web", "main", ["cat"], stdout, null, stdin, false, (ended) => {
      status = ended;
    });
    const echoed = async (line: string) => {
      stdin.write(line);
      await eventually(line, () => String(stdout.read() ?? "") === line);
    };
    await echoed("before\n");
    server.faults.add("429", { times: 2, on: ({ isWatch }) => isWatch });
    await server.stop();
    server.apply(pod("meanwhile"));
    server.store.compact();
    await echoed("while it is away\n");
    await server.listen();
    await eventually("it is watched again", async () => /\[\+\]cluster ok\n/.test(await readiness()), {
      timeoutMs: 20_000,
    });
    await echoed("after\n");
    // What was heard a moment before the API went away counts as ready: the watch may not have begun again yet.
    const metrics = async () => (await fetch(new URL("/metrics", gateway.adminUrl))).text();
    const gone = /sluice_cluster_watch_ends_total\{kind="Pod",how="gone"\} [1-9]/;
    await eventually("its watch was told 410", async () => gone.test(await metrics()), { timeoutMs: 20_000 });
    stdin.end();
    await eventually("its end", () => status?.status === "Success");
  });

  it("publishes what its node's front can, and leaves the kubelet's list", async () => {
    const stored = () => server.store.get(resourceOfKind("Node"), "", "node") as unknown as Node;
    const published = () => stored().metadata.annotations?.["sluice.dev/published-features"];
    await eventually("it is published", () => published() === "ExtendWebSocketsToKubelet");
    expect(stored().status?.declaredFeatures).toEqual(["Another"]);
    const patches = server.requests.filter(({ method }) => method === "PATCH");
    expect(patches.map(({ path: at, caller }) => `${at} ${caller?.username}`)).toEqual([
      "/api/v1/nodes/node/status sluice",
    ]);
  });

  it("finds a pod that no watch has told of", async () => {
    server.watches.isSilent = true;
    server.apply(pod("late"));
    expect(await exec("late")).toBe("Success hello");
    expect(await exec("none")).toMatch(/404/);
    server.watches.isSilent = false;
  });

  it("serves the last known state while the API is away, and says so", async () => {
    await server.stop();
    await eventually("it is said", async () =>
      /\[\+\]cluster ok: the API server was last heard \d+s ago/.test(await readiness()),
    );
    expect(await exec("web")).toBe("Success hello");
    expect(await exec("unknown")).toMatch(/503/);
    await server.listen();
    await eventually("it is watched again", async () => /\[\+\]cluster ok\n/.test(await readiness()));
  });
});
