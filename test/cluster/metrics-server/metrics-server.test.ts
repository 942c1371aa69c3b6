import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, inject, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/http/loopback.ts";
import { describeReal } from "../../support/real-parts.ts";
import { findMetricsServer } from "../../support/real-parts-finder.ts";
import { type Doors, openDoors } from "../doors.ts";
import { ADDRESSES, kubeconfigText, NODE_NAME } from "../kubernetes/credentials.ts";
import { type Daemon, startDaemon } from "../kubernetes/daemon.ts";
import { clusterBinding } from "../kubernetes/objects.ts";
import { applyObjects, type ClusterAddresses } from "../kubernetes/start-cluster.ts";

const ACCOUNT = { name: "metrics-server", namespace: "kube-system" };
const USER = { kind: "User", name: `system:serviceaccount:${ACCOUNT.namespace}:${ACCOUNT.name}` };
const API_SERVICE = "v1beta1.metrics.k8s.io";
const RBAC = "rbac.authorization.k8s.io";
/** Between two readings of a busy machine: what is used is used by the same pods, and not to the byte. */
const FACTOR = 3;
/** It reports a container once it was scraped twice. */
const SCRAPED = { timeoutMs: 90_000, intervalMs: 1_000 };

/** The metrics API's usage of every container, and of the node. */
interface Usage {
  readonly node: { readonly cpuNanos: number; readonly memoryKi: number };
  readonly containers: Readonly<Record<string, { readonly memoryKi: number }>>;
}

describeReal("cluster", "metrics-server", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  const program = findMetricsServer();
  const obstacle = program === undefined ? "metrics-server is not built: npm run build:cluster" : undefined;
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-metrics-server-"));
  const kubectlProgram = path.join(cluster.programs, "kubectl");
  const kubectl = async (kubeconfig: string, ...args: string[]): Promise<string> =>
    (await promisify(execFile)(kubectlProgram, ["--kubeconfig", kubeconfig, ...args])).stdout;
  const admin = (...args: string[]): Promise<string> => kubectl(cluster.adminKubeconfig, ...args);
  const servers = new Map<string, { readonly port: number; readonly daemon: Daemon }>();
  let doors: Doors | undefined;

  beforeEach((context) => context.skip(obstacle !== undefined, obstacle));
  beforeAll(async () => {
    if (program === undefined) {
      console.log(`metrics-server: skipped, ${obstacle}`);
      return;
    }
    doors = await openDoors(cluster, ["straight", "gateway", "node"]);
    await applyObjects(kubectlProgram, cluster.adminKubeconfig, accountObjects());
    const token = (await admin("-n", ACCOUNT.namespace, "create", "token", ACCOUNT.name)).trim();
    const kubeconfig = path.join(folder, "kubeconfig");
    writeFileSync(kubeconfig, kubeconfigText(cluster.url, cluster.credentials, { token }), { mode: 0o600 });
    const ports = await freePorts(2);
    // The kubelet has the InternalIP, and Sluice the ExternalIP.
    for (const [index, address] of ["InternalIP", "ExternalIP"].entries()) {
      const port = ports[index] ?? 0;
      const flags = {
        kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "kubelet-certificate-authority": path.join(cluster.credentials, "ca.crt"),
        "kubelet-preferred-address-types": address,
        "kubelet-use-node-status-port": "true",
        "metric-resolution": "10s",
        "kubelet-request-timeout": "9s",
        "bind-address": ADDRESSES.controlPlane,
        "secure-port": `${port}`,
        "cert-dir": path.join(folder, address),
      };
      const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
      servers.set(address, { port, daemon: startDaemon(`metrics-server-${address}`, program, args, folder) });
    }
  });
  afterAll(async () => {
    for (const { daemon } of servers.values()) await daemon.stop();
    if (servers.size > 0) await admin("delete", "apiservice", API_SERVICE, "--ignore-not-found");
    await doors?.stop();
    rmSync(folder, { recursive: true });
  });

  const usageBy = async (address: string): Promise<Usage> => {
    const { port = 0, daemon } = servers.get(address) ?? {};
    await applyObjects(kubectlProgram, cluster.adminKubeconfig, aggregationObjects(port));
    return await eventually(
      `metrics-server knows every pod by the node's ${address}`,
      async () => {
        daemon?.check();
        const usage = await readUsage((target) => admin("get", "--raw", target)).catch(() => undefined);
        return usage?.containers["web/side"] && usage.containers["echoer/main"] ? usage : undefined;
      },
      SCRAPED,
    );
  };
  const top = async (door: string, ...args: string[]): Promise<string> => {
    const access = await doors?.doors.find(({ name }) => name === door)?.access("admin");
    return kubectl(access?.kubeconfig ?? "", "top", ...args);
  };

  it("reads by Sluice what it reads from the kubelet", async () => {
    const direct = await usageBy("InternalIP");
    // Nothing but the other is left to be asked.
    await servers.get("InternalIP")?.daemon.stop();
    const relayed = await usageBy("ExternalIP");
    const steady = ({ containers }: Usage): string[] =>
      Object.keys(containers).filter((name) => !name.startsWith("crashing/"));
    expect(steady(relayed)).toEqual(steady(direct));
    for (const name of steady(direct)) {
      const [theirs = 0, ours = 0] = [direct, relayed].map((usage) => usage.containers[name]?.memoryKi);
      expect(ours, name).toBeGreaterThan(0);
      expect(Math.max(ours, theirs) / Math.min(ours, theirs), name).toBeLessThan(FACTOR);
    }
    expect(relayed.node.cpuNanos).toBeGreaterThan(0);
    expect(relayed.node.memoryKi / direct.node.memoryKi).toBeGreaterThan(1 / FACTOR);
    expect(relayed.node.memoryKi / direct.node.memoryKi).toBeLessThan(FACTOR);
    expect(doors?.doors.find(({ name }) => name === "node")?.log()).not.toContain("refused the credentials");
  });

  it.each([
    [["nodes"], /^worker-1 +\d+m +\d+% +\d+Mi +\d+%/m],
    [["pods", "--containers"], /^web +side +\d+m +\d+Mi/m],
    [["pods", "-A", "--sum"], /^default +web +\d+m/m],
  ])("kubectl top %j is the same straight and through the gateway", async (args, pattern) => {
    // A scrape may come between the two.
    for (let tries = 1; ; tries++) {
      const [straight, through] = await Promise.all([top("straight", ...args), top("gateway", ...args)]);
      expect(straight).toMatch(pattern);
      if (straight === through) return;
      if (tries === 3) expect(through).toBe(straight);
    }
  });
});

async function readUsage(get: (target: string) => Promise<string>): Promise<Usage> {
  const { usage } = JSON.parse(await get(`/apis/metrics.k8s.io/v1beta1/nodes/${NODE_NAME}`));
  const { items } = JSON.parse(await get("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"));
  const containers = items.flatMap((pod: PodMetrics) =>
    pod.containers.map((container) => [
      `${pod.metadata.name}/${container.name}`,
      { memoryKi: quantity(container.usage.memory, "Ki") },
    ]),
  );
  return {
    node: { cpuNanos: quantity(usage.cpu, "n"), memoryKi: quantity(usage.memory, "Ki") },
    containers: Object.fromEntries(containers.sort()),
  };
}

interface PodMetrics {
  readonly metadata: { readonly name: string };
  readonly containers: readonly { readonly name: string; readonly usage: { readonly memory: string } }[];
}

/** @throws where the unit is another: metrics-server has one of its own for each resource */
function quantity(text: string, unit: string): number {
  if (!text.endsWith(unit)) throw new Error(`${text} is not in ${unit}`);
  return Number(text.slice(0, -unit.length));
}

/** As metrics-server's own manifests have it. */
function accountObjects(): object[] {
  const rules = [
    { apiGroups: [""], resources: ["nodes/metrics"], verbs: ["get"] },
    { apiGroups: [""], resources: ["pods", "nodes"], verbs: ["get", "list", "watch"] },
  ];
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: ACCOUNT },
    { apiVersion: `${RBAC}/v1`, kind: "ClusterRole", metadata: { name: "system:metrics-server" }, rules },
    clusterBinding("system:metrics-server", "system:metrics-server", USER),
    clusterBinding("metrics-server:system:auth-delegator", "system:auth-delegator", USER),
    {
      apiVersion: `${RBAC}/v1`,
      kind: "RoleBinding",
      metadata: { name: "metrics-server-auth-reader", namespace: ACCOUNT.namespace },
      roleRef: { apiGroup: RBAC, kind: "Role", name: "extension-apiserver-authentication-reader" },
      subjects: [{ apiGroup: RBAC, ...USER }],
    },
  ];
}

/** A process of this machine as the server of the metrics API: there is no kube-proxy here. */
function aggregationObjects(port: number): object[] {
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: ACCOUNT,
      spec: { type: "ExternalName", externalName: ADDRESSES.controlPlane },
    },
    {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: API_SERVICE },
      spec: {
        service: { ...ACCOUNT, port },
        group: "metrics.k8s.io",
        version: "v1beta1",
        insecureSkipTLSVerify: true,
        groupPriorityMinimum: 100,
        versionPriority: 100,
      },
    },
  ];
}
