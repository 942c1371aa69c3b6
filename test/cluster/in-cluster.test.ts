import { execFile, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { sluiceCommand } from "../support/built-program.ts";
import { eventually } from "../support/eventually.ts";
import { freePorts } from "../support/http/loopback.ts";
import { writeEvidence } from "../support/in-cluster-evidence.ts";
import { describeReal } from "../support/real-parts.ts";
import { RedisProcess } from "../support/redis-process.ts";
import { issueCertificate } from "../support/test-certificates.ts";
import { CHART, ChartedCluster, IMAGE, VERSIONS } from "./kubernetes/charted-cluster.ts";
import { ADDRESSES, machineAddress, NODE_NAME, TOKENS } from "./kubernetes/credentials.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";
import { NumberedLines } from "./upgrade-load.ts";

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
    await charted.remove(
      "sluice",
      "sluice-node",
      "gateway",
      "bastion",
      "ingress",
      "node",
      "load",
      "constrained",
    );
  }, 120_000);

  /** A forwarded port of a gateway's Service, as NOTES of the chart have it. */
  const forwarded = async (namespace: string, service: string, work: () => Promise<void>): Promise<void> => {
    const args = ["-n", namespace, "port-forward", `svc/${service}`, `${port}:443`];
    const stdio: StdioOptions = ["ignore", "pipe", "inherit"];
    const child = spawn(charted.kubectlProgram, args, { env: charted.env, stdio });
    const exited = once(child, "exit");
    try {
      const isForwarded = () => once(child.stdout as Readable, "data");
      await (isInstalled ? isForwarded() : type(`kubectl ${args.join(" ")} &`, isForwarded));
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
    await forwarded("sluice", "sluice-gateway", async () => {
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
    const all = await kubectl("-n", "sluice", "logs", "deployment/sluice-gateway", "--all-pods");
    expect(all).toContain("the gateway is ready");
    // This kubelet's certificate is signed by no authority that the chart was given; the second is of an old Node.js alone.
    const log = all.replace(
      /^.*(?:kubelet\.certificateAuthorityFile is absent|drops HTTP\/2 headers).*$/gm,
      "",
    );
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

  describe("loads the API server from the pods of an Indexed Job, and adds up their reports", () => {
    const server = "https://kubernetes.default.svc";
    const authority = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
    const load = [
      ...["exec", "web", "-c", "main", "--sessions", "2", "--count", "4", "--messages", "5"],
      ...[
        "--message-size",
        "100",
        "--duration",
        "60s",
        "--server",
        server,
        "--certificate-authority",
        authority,
      ],
    ];
    const sluice = async (...args: string[]): Promise<string> =>
      (await promisify(execFile)(...sluiceCommand(...args))).stdout;
    const expectReports = async (job: string): Promise<void> => {
      await kubectl("wait", "--for=condition=Complete", "--timeout=120s", job);
      const pods = ["-l", `batch.kubernetes.io/job-name=${job.replace(/^.*\//, "")}`, "--tail=-1"];
      const log = path.join(charted.folder, "load.log");
      writeFileSync(log, await kubectl("logs", ...pods));
      const table = await sluice("load", "merge", log, "--threshold", "error_rate<1%");
      expect(table).toMatch(/^parts {6}2 of 2, started within/m);
      expect(table).toContain("sessions   4 started, 4 finished, 0 failed\n");
    };

    it("of sluice load job", async () => {
      const manifests = path.join(charted.folder, "load.yaml");
      const image = ["--image", `${IMAGE}:${VERSIONS.old}`];
      writeFileSync(manifests, await sluice("load", "job", "2", ...image, "--", ...load));
      try {
        await kubectl("apply", "--filename", manifests, "--warnings-as-errors");
        await expectReports("job/sluice-load");
      } finally {
        await kubectl("delete", "--filename", manifests, "--wait=false");
      }
    }, 240_000);

    it("of the chart, in a release of its own", async () => {
      const release = ["load", "sluice-0.1.0.tgz", "--namespace", "default"];
      const set = `image.repository=${IMAGE},gateway.enabled=false,load.enabled=true`;
      await charted.helm(
        ...["install", ...release, "--set", set, "--set-json", `load.arguments=${JSON.stringify(load)}`],
      );
      try {
        const jobs = ["get", "job", "-l", "app.kubernetes.io/instance=load", "-o", "name"];
        const job = (await kubectl(...jobs)).trim();
        await expectReports(job);
        // Another load is another Job; one that is left alone does not run again.
        await charted.helm("upgrade", ...release, "--reuse-values", "--set", "networkPolicy.enabled=true");
        expect((await kubectl(...jobs)).trim()).toBe(job);
        await charted.helm("upgrade", ...release, "--reuse-values", "--set", "load.parts=3");
        await eventually("the other Job alone", async () => {
          const found = (await kubectl(...jobs)).trim();
          return found !== job && !found.includes("\n");
        });
      } finally {
        await charted.helm("uninstall", "load", "--namespace", "default");
      }
    }, 240_000);
  });

  it("impersonates by the constrained verbs alone, as each caller", async () => {
    await charted.createNamespace("constrained", "restricted");
    const values = {
      "image.repository": IMAGE,
      "gateway.replicaCount": 1,
      "gateway.resources.requests.cpu": "10m",
      "gateway.config.cluster.impersonation": "constrained",
    };
    const set = Object.entries(values).map(([name, value]) => `${name}=${value}`);
    await charted.helm(
      ...["install", "constrained", "sluice-0.1.0.tgz", "--namespace", "constrained"],
      ...["--set", set.join(","), "--wait", "--timeout", "120s"],
    );
    // Not `auth can-i`: it knows no group of a resource that the API server does not serve.
    const can = async (verb: string, group: string, resource: string): Promise<string> => {
      const file = path.join(charted.folder, "review.json");
      const review = {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SubjectAccessReview",
        spec: {
          user: "system:serviceaccount:constrained:constrained-sluice-gateway",
          resourceAttributes: { verb, group, resource },
        },
      };
      writeFileSync(file, JSON.stringify(review));
      return kubectl("create", "--filename", file, "-o", "jsonpath={.status.allowed}");
    };
    expect(await can("impersonate:user-info", "authentication.k8s.io", "users")).toBe("true");
    for (const resource of ["users", "groups", "serviceaccounts"])
      expect(await can("impersonate", "", resource)).toBe("false");

    await forwarded("constrained", "constrained-sluice-gateway", async () => {
      const skip = ["--server", `https://localhost:${port}`, "--insecure-skip-tls-verify"];
      const as = (token: string, ...args: string[]) => kubectl(...skip, "--token", token, ...args);
      const { dev, viewer, admin } = TOKENS;
      const hello = ["exec", "web", "-c", "main", "--", "echo", "hello"];
      expect(await as(dev.token, ...hello)).toBe("hello\n");
      expect(await as(viewer.token, "get", "pods", "-o", "name")).toContain("pod/web\n");
      await expect(as(viewer.token, ...hello)).rejects.toThrow('User "vera" cannot create resource');
      const own = (await kubectl("create", "token", "default")).trim();
      const whoami = await as(own, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}");
      expect(whoami).toBe("system:serviceaccount:default:default");
      // What the verbs exclude whatever the role says.
      await expect(as(admin.token, "get", "--raw", "/version")).rejects.toThrow(
        "impersonating the system:masters group is not allowed",
      );
    });
    const log = await kubectl("-n", "constrained", "logs", "deployment/constrained-sluice-gateway");
    expect(log).not.toMatch(/lacks permissions|"level":"error"/);
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
      "gateway.tls.certManager.enabled=false,gateway.peers.certManager.enabled=false,ingress.rbac.secretNamespaces={ingress},ingress.rbac.secrets=null";
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

  describeReal("redis", "as replicas with one store of quotas and one prober", () => {
    let redis: RedisProcess | undefined;
    let session: NumberedLines | undefined;
    afterAll(async () => {
      session?.stop();
      await redis?.stop();
    });

    it("counts the sessions of all replicas, with password and authority from Secrets", async () => {
      const address = machineAddress() ?? "";
      const [password, authority] = ["of-the-store", await issueCertificate({ commonName: "store CA" })];
      const tls = await issueCertificate({ commonName: "store" }, authority, { addresses: [address] });
      redis = await RedisProcess.start({ password, tls, address });
      await charted.createNamespace("quotas", "restricted");
      const ca = path.join(charted.folder, "store-ca.crt");
      writeFileSync(ca, authority.cert);
      const secret = ["-n", "quotas", "create", "secret", "generic"];
      await kubectl(...secret, "valkey", `--from-literal=valkey-password=${password}`);
      await kubectl(...secret, "valkey-ca", `--from-file=ca.crt=${ca}`);
      const values = {
        "image.repository": IMAGE,
        "gateway.resources.requests.cpu": "10m",
        "gateway.quotaStore.existingSecret": "valkey",
        "gateway.quotaStore.passwordKey": "valkey-password",
        "gateway.quotaStore.tls.existingSecret": "valkey-ca",
        "gateway.config.quotaStore.url": `rediss://${address}:${redis.port}`,
        "gateway.config.quotaStore.onFailure": "deny",
        "gateway.config.policy.limits.maxSessionsPerUser": 1,
        // A node without pods: the election is what counts.
        "gateway.config.podProbes.nodeNames": "{virtual}",
      };
      const set = Object.entries(values).map(([name, value]) => `${name}=${value}`);
      await charted.helm(
        ...["install", "quotas", "sluice-0.1.0.tgz", "--namespace", "quotas"],
        ...["--set", set.join(","), "--wait", "--timeout", "120s"],
      );
      const pods = ["-n", "quotas", "get", "pods", "-o", "jsonpath={.items[*].status.podIP}"];
      const [one, other] = (await kubectl(...pods)).split(" ").map((ip) => `https://${ip}:6443`);
      const begun = new NumberedLines(one ?? "");
      session = begun;
      await eventually("the session runs", () => begun.isEchoed, { timeoutMs: 30_000 });
      const user = ["--insecure-skip-tls-verify", "--token", TOKENS.dev.token];
      const hello = ["exec", "web", "-c", "main", "--", "echo", "hello"];
      const throughOther = () => kubectl("--server", other ?? "", ...user, ...hello);
      await expect(throughOther()).rejects.toThrow('user "dave" has 1 streaming sessions already');
      await begun.finish();
      expect(await throughOther()).toBe("hello\n");
    }, 240_000);

    it("elects the prober by the release's Lease, without the right to create one", async () => {
      const lease = ["get", "lease", "quotas-sluice-gateway-probes"];
      const holder = await eventually("a replica has the Lease", async () =>
        kubectl("-n", "quotas", ...lease, "-o", "jsonpath={.spec.holderIdentity}").then(
          (name) => name || false,
        ),
      );
      expect(holder).toMatch(/^quotas-sluice-gateway-\w+-\w+_/);
      const log = await kubectl("-n", "quotas", "logs", "deployment/quotas-sluice-gateway", "--all-pods");
      expect(log.match(/this gateway probes pods/g)).toHaveLength(1);
      expect(log).not.toMatch(/the Lease could not be|lacks permissions/);
    });
  });

  it("stands on the node's port as a DaemonSet, with the kubelet behind it", async () => {
    const { kubelet, sluiceNode } = ADDRESSES;
    const [adminPort] = await freePorts(1);
    await charted.createNamespace("sluice-node", "privileged");
    const own = path.join(charted.folder, "node-tls");
    mkdirSync(own);
    for (const [from, to] of [
      ["kubelet-serving.crt", "tls.crt"],
      ["kubelet-serving.key", "tls.key"],
    ] as const)
      copyFileSync(credential(from), path.join(own, to));
    const values = {
      "node.tls.hostPath": own,
      "node.tls.certFile": "tls.crt",
      "node.tls.keyFile": "tls.key",
      // That which the API server publishes.
      "node.clientCA.existingConfigMap": "",
      "node.rbac.nodeNames": `{${NODE_NAME}}`,
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
    const read = ["--server", node, "get", "--raw", "/metrics/resource"];
    // The administrator's certificate is of system:masters.
    await expect(kubectl(...read)).rejects.toThrow("You must be logged in to the server");
    const metrics = await kubectl(...read, "--token", TOKENS.admin.token);
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
