import { execFile, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { sluiceCommand } from "../support/built-program.ts";
import { eventually } from "../support/eventually.ts";
import { writeEvidence } from "../support/in-cluster-evidence.ts";
import { describeReal } from "../support/real-parts.ts";
import { CHART, ChartedCluster, IMAGE } from "./kubernetes/charted-cluster.ts";
import { freePorts } from "./kubernetes/control-plane.ts";
import { ADDRESSES, TOKENS } from "./kubernetes/credentials.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";

interface Typed {
  readonly command: string;
  readonly seconds: number;
}

describeReal(["cluster", "helm"], "Sluice as pods of the cluster", () => {
  let charted: ChartedCluster;
  let cluster: ClusterAddresses;
  let port: number;
  /** What a person types, in order, with the seconds that each took. */
  const typed: Typed[] = [];
  let isInstalled = false;

  const kubectl = (...args: string[]): Promise<string> => charted.kubectl(...args);
  const type = async (command: string, work?: () => Promise<unknown>): Promise<string> => {
    const startMs = performance.now();
    const [program, ...args] = command.split(" ");
    const output = await (work?.() ?? (program === "helm" ? charted.helm(...args) : kubectl(...args)));
    typed.push({ command, seconds: (performance.now() - startMs) / 1_000 });
    return String(output);
  };
  const credential = (name: string): string => path.join(cluster.credentials, name);

  beforeAll(async () => {
    cluster = inject("cluster") as ClusterAddresses;
    charted = await ChartedCluster.create(cluster);
    [port = 0] = await freePorts(1);
  }, 300_000);
  afterAll(async () => {
    if (isInstalled) writeEvidence("install", tableOf(cluster, typed));
    await charted.remove("sluice", "sluice-node", "gateway", "bastion", "ingress", "node");
  }, 120_000);

  /** A forwarded port of the gateway's Service, as NOTES of the chart have it. */
  const forwarded = async (work: () => Promise<void>): Promise<void> => {
    const args = ["-n", "sluice", "port-forward", "svc/sluice-gateway", `${port}:443`];
    const stdio: StdioOptions = ["ignore", "pipe", "inherit"];
    const child = spawn(charted.kubectlProgram, args, { env: charted.env, stdio });
    const exited = once(child, "exit");
    try {
      await type(`kubectl ${args.join(" ")} &`, () => once(child.stdout as Readable, "data"));
      await work();
    } finally {
      child.kill();
      await exited;
    }
  };
  const throughSluice = (user: keyof typeof TOKENS): string =>
    `--server https://localhost:${port} --certificate-authority ca.crt --token ${TOKENS[user].token}`;

  it("comes from nothing to kubectl exec by the packaged chart and image", async () => {
    await type("ctr -n k8s.io images import sluice.tar", () => charted.importImage());
    await type("kubectl create namespace sluice");
    await type("kubectl label namespace sluice pod-security.kubernetes.io/enforce=restricted");
    await type(
      `helm install sluice sluice-0.1.0.tgz --namespace sluice --set image.repository=${IMAGE} --wait --timeout 120s`,
    );
    await forwarded(async () => {
      const ca = await kubectl(
        ...["-n", "sluice", "get", "secret", "sluice-gateway-tls", "-o", "jsonpath={.data.ca\\.crt}"],
      );
      writeFileSync(path.join(charted.folder, "ca.crt"), Buffer.from(ca, "base64"));
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

  it("loads the API server from the pods of an Indexed Job, and adds up their reports", async () => {
    const sluice = async (...args: string[]): Promise<string> =>
      (await promisify(execFile)(...sluiceCommand(...args))).stdout;
    const account = "/var/run/secrets/kubernetes.io/serviceaccount";
    const job = await sluice(
      ...["load", "job", "2", "--image", `${IMAGE}:0.1.0`, "--", "exec", "web", "-c", "main"],
      ...["--sessions", "2", "--count", "4", "--messages", "5", "--message-size", "100", "--duration", "60s"],
      ...["--server", "https://kubernetes.default.svc", "--certificate-authority", `${account}/ca.crt`],
    );
    const manifests = path.join(charted.folder, "load.yaml");
    writeFileSync(manifests, job);
    try {
      await kubectl("apply", "--filename", manifests, "--warnings-as-errors");
      await kubectl("wait", "--for=condition=Complete", "--timeout=120s", "job/sluice-load");
      const pods = ["-l", "batch.kubernetes.io/job-name=sluice-load", "--tail=-1"];
      const log = path.join(charted.folder, "load.log");
      writeFileSync(log, await kubectl("logs", ...pods));
      const table = await sluice("load", "merge", log, "--threshold", "error_rate<1%");
      expect(table).toMatch(/^parts {6}2 of 2, started within/m);
      expect(table).toContain("sessions   4 started, 4 finished, 0 failed\n");
    } finally {
      await kubectl("delete", "--filename", manifests, "--wait=false");
    }
  }, 240_000);

  it.each(
    readdirSync(path.join(CHART, "ci")),
  )("is admitted with %s under the restricted standard", async (values) => {
    const [role = ""] = values.split("-");
    const file = path.join(charted.folder, `${role}.yaml`);
    const isNode = role === "node";
    const args = ["template", role, CHART, "--namespace", role, "--values", path.join(CHART, "ci", values)];
    // The cluster has no cert-manager, and no namespaces but those of the tests.
    const unlike =
      "gateway.tls.certManager.enabled=false,gateway.peers.certManager.enabled=false,ingress.rbac.secretNamespaces={ingress}";
    const manifests = await charted.helm(...args, "--set", unlike);
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
    await charted.createNamespace("sluice-node", "privileged");
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
    const ci = path.join(CHART, "ci/node-values.yaml");
    await charted.helm(
      ...["install", "node", "sluice-0.1.0.tgz", "--namespace", "sluice-node", "--values", ci],
      ...["--set", set.join(","), "--wait", "--timeout", "120s"],
    );
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

function tableOf({ version }: ClusterAddresses, typed: readonly Typed[]): string {
  const total = typed.reduce((sum, { seconds }) => sum + seconds, 0);
  const rows = typed.map(({ command, seconds }) => `| \`${command}\` | ${seconds.toFixed(1)} |`);
  const head = `Kubernetes ${version}; ${total.toFixed(0)} seconds in all.`;
  return `${head}\n\n| command | seconds |\n|---|---|\n${rows.join("\n")}`;
}
