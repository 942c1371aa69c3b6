import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { sluiceArchive, sluiceLayer } from "../real/containerd/sluice-image.ts";
import { importImages } from "../real/containerd/start-containerd.ts";
import { eventually } from "../support/eventually.ts";
import { describeReal, newestContainerd, programOf } from "../support/real-parts.ts";
import { freePorts } from "./kubernetes/control-plane.ts";
import { ADDRESSES, TOKENS } from "./kubernetes/credentials.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";

const chart = fileURLToPath(new URL("../../deploy/chart", import.meta.url));
const document = fileURLToPath(new URL("../../docs/evidence/in-cluster.md", import.meta.url));
const IMAGE = "localhost/sluice";

interface Typed {
  readonly command: string;
  readonly seconds: number;
}

describeReal(["cluster", "helm"], "Sluice as pods of the cluster", () => {
  let folder: string;
  let cluster: ClusterAddresses;
  let image: Buffer;
  let port: number;
  const helm = (): string => programOf("helm");
  /** What a person types, in order, with the seconds that each took. */
  const typed: Typed[] = [];
  let isInstalled = false;

  const run = async (program: string, args: readonly string[]): Promise<string> => {
    const env = { ...process.env, KUBECONFIG: cluster.adminKubeconfig };
    try {
      return (await promisify(execFile)(program, [...args], { env, cwd: folder, timeout: 200_000 })).stdout;
    } catch (error) {
      const { stderr, stdout } = error as { stderr: string; stdout: string };
      throw new Error(`${path.basename(program)} ${args.join(" ")}: ${stderr}${stdout}`);
    }
  };
  const kubectl = (...args: string[]): Promise<string> => run(path.join(cluster.programs, "kubectl"), args);
  const type = async (command: string, work?: () => Promise<unknown>): Promise<string> => {
    const startMs = performance.now();
    const [program, ...args] = command.split(" ");
    const output = work ? await work() : await run(program === "helm" ? helm() : kubectlProgram(), args);
    typed.push({ command, seconds: (performance.now() - startMs) / 1_000 });
    return String(output);
  };
  const credential = (name: string): string => path.join(cluster.credentials, name);
  const kubectlProgram = (): string => path.join(cluster.programs, "kubectl");

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-in-cluster-"));
    cluster = inject("cluster") as ClusterAddresses;
    image = sluiceArchive(sluiceLayer(), `${IMAGE}:0.1.0`);
    [port = 0] = await freePorts(1);
    await run(helm(), ["package", chart, "--destination", folder]);
  }, 300_000);
  afterAll(async () => {
    if (process.env.SLUICE_WRITE_DOCS === "1" && isInstalled) writeFileSync(document, pageOf(cluster, typed));
    const namespaces = ["sluice", "sluice-node", "gateway", "bastion", "ingress", "node"];
    await kubectl("delete", "namespace", "--ignore-not-found", "--wait=false", ...namespaces);
    rmSync(folder, { recursive: true });
  }, 120_000);

  /** A forwarded port of the gateway's Service, as NOTES of the chart have it. */
  const forwarded = async (work: () => Promise<void>): Promise<void> => {
    const args = ["-n", "sluice", "port-forward", "svc/sluice-gateway", `${port}:443`];
    const env = { ...process.env, KUBECONFIG: cluster.adminKubeconfig };
    const child = spawn(kubectlProgram(), args, { env, stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(child, "exit");
    try {
      await type(`kubectl ${args.join(" ")} &`, () => once(child.stdout, "data"));
      await work();
    } finally {
      child.kill();
      await exited;
    }
  };
  const throughSluice = (user: keyof typeof TOKENS): string =>
    `--server https://localhost:${port} --certificate-authority ca.crt --token ${TOKENS[user].token}`;

  it("comes from nothing to kubectl exec by the packaged chart and image", async () => {
    const containerd = newestContainerd();
    if (containerd === undefined) throw new Error("there is no containerd");
    await type("ctr -n k8s.io images import sluice.tar", () =>
      importImages(containerd, cluster.runtimeSocket, image),
    );
    await type("kubectl create namespace sluice");
    await type("kubectl label namespace sluice pod-security.kubernetes.io/enforce=restricted");
    await type(
      `helm install sluice sluice-0.1.0.tgz --namespace sluice --set image.repository=${IMAGE} --wait --timeout 120s`,
    );
    await forwarded(async () => {
      const ca = await kubectl(
        ...["-n", "sluice", "get", "secret", "sluice-gateway-tls", "-o", "jsonpath={.data.ca\\.crt}"],
      );
      writeFileSync(path.join(folder, "ca.crt"), Buffer.from(ca, "base64"));
      const hello = await type(`kubectl ${throughSluice("dev")} exec web -c main -- echo hello`);
      expect(hello).toBe("hello\n");
      // Forwarded to the API server as the caller.
      const pods = await type(`kubectl ${throughSluice("viewer")} get pods -o name`);
      expect(pods).toContain("pod/web\n");
      const refused = kubectl(...`${throughSluice("viewer")} exec web -c main -- echo hello`.split(" "));
      await expect(refused).rejects.toThrow('pods "web" is forbidden: User "vera" cannot create resource');
    });
    isInstalled = true;
  }, 240_000);

  it("has permission for all that it does, and for nothing else", async () => {
    await eventually("both replicas are ready", async () =>
      (await kubectl("-n", "sluice", "get", "deployment", "sluice-gateway")).includes("2/2"),
    );
    const log = await kubectl("-n", "sluice", "logs", "deployment/sluice-gateway", "--all-pods");
    expect(log).toContain("the gateway is ready");
    expect(log).not.toMatch(/lacks permissions|system:serviceaccount|could not be|"level":"(warn|error)"/);
    const can = ["auth", "can-i", "--as", "system:serviceaccount:sluice:sluice-gateway"];
    const asked = [
      "create pods",
      "get secrets",
      "create pods --subresource=exec",
      "get nodes --subresource=proxy",
      "list endpointslices.discovery.k8s.io",
    ];
    const answers = asked.map((right) => kubectl(...can, ...right.split(" "), "-A").catch(() => "no"));
    expect((await Promise.all(answers)).map((answer) => answer.trim())).toEqual(asked.map(() => "no"));
  });

  it.each(
    readdirSync(path.join(chart, "ci")),
  )("is admitted with %s under the restricted standard", async (values) => {
    const [role = ""] = values.split("-");
    const file = path.join(folder, `${role}.yaml`);
    const isNode = role === "node";
    const args = ["template", role, chart, "--namespace", role, "--values", path.join(chart, "ci", values)];
    // The cluster has no cert-manager, and no namespaces but those of the tests.
    const unlike =
      "gateway.tls.certManager.enabled=false,gateway.peers.certManager.enabled=false,ingress.rbac.secretNamespaces={ingress}";
    const manifests = await run(helm(), [...args, "--set", unlike]);
    writeFileSync(file, manifests);
    await kubectl("create", "namespace", role);
    await kubectl(
      ...["label", "namespace", role],
      ...["enforce", "warn"].map((mode) => `pod-security.kubernetes.io/${mode}=restricted`),
    );
    const dryRun = (): Promise<string> =>
      kubectl("apply", "--dry-run=server", "--warnings-as-errors", "--filename", file);
    if (!isNode) {
      expect(await dryRun()).toContain("created (server dry run)");
      return;
    }
    // Each with its reason in templates/node.yaml.
    const message = await dryRun().then(String, ({ message: text }: Error) => text);
    expect(message).toMatch(
      /host namespaces \(hostNetwork=true\), hostPort .*restricted volume types .*"cri"/,
    );
    expect(message).toMatch(/runAsUser=0/);
    expect(message).not.toMatch(/privileged=true|allowPrivilegeEscalation|capabilities/);
  });

  it("stands on the node's port as a DaemonSet, with the kubelet behind it", async () => {
    const { kubelet, sluiceNode } = ADDRESSES;
    const [adminPort] = await freePorts(1);
    await kubectl("create", "namespace", "sluice-node");
    await kubectl("label", "namespace", "sluice-node", "pod-security.kubernetes.io/enforce=privileged");
    const [crt, key] = [credential("kubelet-serving.crt"), credential("kubelet-serving.key")];
    await kubectl(
      "-n",
      "sluice-node",
      "create",
      "secret",
      "tls",
      "nodes-tls",
      `--cert=${crt}`,
      `--key=${key}`,
    );
    const values = {
      "image.repository": IMAGE,
      "node.runtimeSocket": cluster.runtimeSocket,
      "node.podLogs": path.join(cluster.folder, "logs"),
      "node.address": sluiceNode,
      "node.adminPort": adminPort,
      "node.port": cluster.kubeletPort,
      "node.kubelet.url": `https://${kubelet}:${cluster.kubeletPort}`,
    };
    const set = Object.entries(values).map(([name, value]) => `${name}=${value}`);
    const ci = path.join(chart, "ci/node-values.yaml");
    await run(helm(), [
      ...["install", "node", "sluice-0.1.0.tgz", "--namespace", "sluice-node", "--values", ci],
      ...["--set", set.join(","), "--wait", "--timeout", "120s"],
    ]);
    // This API server dials the ExternalIP of the node, which is Sluice's.
    const through = (...args: string[]): Promise<string> =>
      kubectl("--server", cluster.throughSluiceUrl, ...args);
    expect(await through("exec", "web", "-c", "main", "--", "echo", "hello")).toBe("hello\n");
    expect(await through("logs", "finite")).toContain("2000\n");
    // Straight at the node's port: API servers proxy to no loopback address.
    const node = `https://${sluiceNode}:${cluster.kubeletPort}`;
    const metrics = await kubectl("--server", node, "get", "--raw", "/metrics/resource");
    expect(metrics).toContain("node_cpu_usage_seconds_total");
    const log = await kubectl("-n", "sluice-node", "logs", "daemonset/node-sluice-node");
    expect(log).toContain('"msg":"session started"');
    expect(log).not.toMatch(/"level":"(warn|error)"/);
  }, 240_000);
});

function pageOf({ version }: ClusterAddresses, typed: readonly Typed[]): string {
  const total = typed.reduce((sum, { seconds }) => sum + seconds, 0);
  const rows = typed.map(({ command, seconds }) => `| \`${command}\` | ${seconds.toFixed(1)} |`);
  return `# From nothing to kubectl exec through Sluice

Written by \`SLUICE_WRITE_DOCS=1 npm run test:cluster -- test/cluster/in-cluster.test.ts\`; not edited by hand. A Kubernetes ${version} (real control plane,
kubelet and containerd) with one node; the chart is packaged, the image is an archive made by scripts/image-rootfs.mjs.
${total.toFixed(0)} seconds in all.

| command | seconds |
|---|---|
${rows.join("\n")}

Beside the steps the test checks that the ServiceAccount of the pods may do nothing that it does not need, that a user without permission gets the API
server's refusal, and that the namespace enforces the restricted Pod Security Standard.
`;
}
