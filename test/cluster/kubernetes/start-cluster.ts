import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { startContainerd } from "../../real/containerd/start-containerd.ts";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/http/loopback.ts";
import { collect } from "../../support/kubectl.ts";
import { newestContainerd } from "../../support/real-parts.ts";
import { findClusterPrograms } from "../../support/real-parts-finder.ts";
import { startControlPlane } from "./control-plane.ts";
import { ADDRESSES, ClusterCredentials, NODE_NAME } from "./credentials.ts";
import type { Daemon } from "./daemon.ts";
import { allowWatches, type KubeletOptions, rememberKernelSettings, startKubelet } from "./kubelet.ts";
import { clusterObjects } from "./objects.ts";
import { serveKubernetesService } from "./service-network.ts";

/** Where everything is; plain data, for the tests' processes. */
export interface ClusterAddresses {
  readonly version: string;
  readonly programs: string;
  readonly folder: string;
  readonly credentials: string;
  readonly url: string;
  /** The API server that reaches nodes by their ExternalIP, which is ADDRESSES.sluiceNode. */
  readonly throughSluiceUrl: string;
  readonly kubeletPort: number;
  readonly runtimeSocket: string;
  readonly adminKubeconfig: string;
  readonly pids: Readonly<Record<string, number>>;
}

export interface RunningCluster extends ClusterAddresses {
  readonly daemons: readonly Daemon[];
  /** SIGKILL, and a new process over the same pods. */
  restartContainerd(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * A whole Kubernetes in a temporary folder: control plane, kubelet, containerd, and the pods of objects.ts running. What a killed run left behind
 * is removed by the next start.
 */
export async function startCluster({
  apiServer = "kube-apiserver",
  featureGates,
}: { readonly apiServer?: string } & Pick<KubeletOptions, "featureGates"> = {}): Promise<RunningCluster> {
  const [programs, runtime] = [findClusterPrograms(), newestContainerd()];
  if (programs === undefined || runtime === undefined) throw new Error("a part of the cluster is missing");
  allowWatches();
  const containerd = await startContainerd(runtime, { hasPodNetwork: true });
  const restoreKernelSettings = rememberKernelSettings();
  const daemons: Daemon[] = [];
  let stopService = async (): Promise<void> => {};
  const stop = async (): Promise<void> => {
    // Their files are removed with them. At SIGTERM an API server waits for its connections, up to 15 s each.
    await Promise.all(daemons.map((daemon) => daemon.stop("SIGKILL")));
    await stopService();
    restoreKernelSettings();
    await containerd.stop();
  };
  try {
    const { network } = containerd;
    if (network === undefined) throw new Error("containerd has no network for pods");
    const { serviceAddress, serviceRange, gateway: nameServer } = network;
    const folder = path.join(containerd.folder, "credentials");
    await mkdir(folder);
    const credentials = await ClusterCredentials.write(folder, serviceAddress);
    const options = { credentials, serviceRange, apiServer };
    const controlPlane = await startControlPlane(programs.folder, containerd.folder, options, (daemon) =>
      daemons.push(daemon),
    );
    const adminKubeconfig = controlPlane.kubeconfig("admin");
    stopService = await serveKubernetesService(network, controlPlane.url, adminKubeconfig);
    const [kubeletPort = 0] = await freePorts(1);
    const kubeconfig = controlPlane.kubeconfig("kubelet");
    daemons.push(
      await startKubelet({
        programs: programs.folder,
        containerd,
        credentials,
        kubeconfig,
        port: kubeletPort,
        nameServer,
        featureGates,
      }),
    );
    controlPlane.kubeconfig("sluice");
    const kubectl = path.join(programs.folder, "kubectl");
    await setUp(kubectl, adminKubeconfig);
    return {
      version: await versionOf(kubectl, adminKubeconfig),
      programs: programs.folder,
      folder: containerd.folder,
      credentials: folder,
      url: controlPlane.url,
      throughSluiceUrl: controlPlane.throughSluiceUrl,
      kubeletPort,
      runtimeSocket: containerd.socket,
      adminKubeconfig,
      pids: Object.fromEntries(daemons.map(({ name, pid }) => [name, pid])),
      daemons,
      restartContainerd: () => containerd.restart(),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Of the API server: `1.37.2`. */
async function versionOf(kubectl: string, kubeconfig: string): Promise<string> {
  const args = ["--kubeconfig", kubeconfig, "get", "--raw", "/version"];
  const { stdout } = await promisify(execFile)(kubectl, args);
  return JSON.parse(stdout).gitVersion.slice(1);
}

/** The node's addresses, as a cloud provider would set them, and the objects; until the pods are what the tests expect. */
async function setUp(kubectl: string, kubeconfig: string): Promise<void> {
  const run = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)(kubectl, ["--kubeconfig", kubeconfig, ...args])).stdout;
  const wait = { timeoutMs: 120_000, intervalMs: 300 };
  await eventually("the node registers", () => run("get", "node", NODE_NAME), wait);
  const addresses = [
    { type: "InternalIP", address: ADDRESSES.kubelet },
    { type: "ExternalIP", address: ADDRESSES.sluiceNode },
    { type: "Hostname", address: NODE_NAME },
  ];
  const patch = (body: object, ...flags: string[]): Promise<string> =>
    run("patch", "node", NODE_NAME, "--type=merge", ...flags, "-p", JSON.stringify(body));
  await patch({ status: { addresses } }, "--subresource=status");
  await patch({ spec: { taints: null } });
  await eventually("the default service account exists", () => run("get", "serviceaccount", "default"), wait);
  await applyObjects(kubectl, kubeconfig, clusterObjects());
  const readiness = "pod/web pod/echoer".split(" ");
  await run("wait", "--for=condition=Ready", "--timeout=120s", ...readiness);
  await run("wait", "--for=jsonpath={.status.phase}=Failed", "--timeout=120s", "pod/finite");
}

/** @throws with kubectl's words */
export async function applyObjects(
  kubectl: string,
  kubeconfig: string,
  objects: readonly object[],
): Promise<void> {
  await applyText(kubectl, kubeconfig, JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }));
}

/** As `applyObjects`, with manifests as they stand. */
export async function applyText(kubectl: string, kubeconfig: string, manifests: string): Promise<void> {
  const child = spawn(kubectl, ["--kubeconfig", kubeconfig, "apply", "-f", "-"], {
    stdio: ["pipe", "ignore", "pipe"],
  });
  const stderr = collect(child.stderr);
  child.stdin.end(manifests);
  const [exitCode] = await once(child, "close");
  if (exitCode !== 0) throw new Error(`kubectl apply ended with ${exitCode}: ${stderr()}`);
}
