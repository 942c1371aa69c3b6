import { readFileSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import type { RunningContainerd } from "../../real/containerd/start-containerd.ts";
import { ADDRESSES, type ClusterCredentials, NODE_NAME } from "./credentials.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

export interface KubeletOptions {
  readonly programs: string;
  readonly containerd: RunningContainerd;
  readonly credentials: ClusterCredentials;
  readonly kubeconfig: string;
  readonly port: number;
  /** Of pods. */
  readonly nameServer: string;
  readonly featureGates?: Readonly<Record<string, boolean>> | undefined;
}

/** The kubelet of NODE_NAME over a containerd, with everything it writes in containerd's folder. Its Node has no address until it is given one. */
export async function startKubelet(options: KubeletOptions): Promise<Daemon> {
  const { programs, containerd, credentials, kubeconfig, port, nameServer, featureGates = {} } = options;
  const root = path.join(containerd.folder, "kubelet");
  for (const folder of ["pki", "plugins", "manifests"])
    await mkdir(path.join(root, folder), { recursive: true });
  const configuration = {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    address: ADDRESSES.kubelet,
    port,
    readOnlyPort: 0,
    healthzPort: 0,
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: credentials.file("ca.crt") },
    },
    // An API server that hangs (outage.test.ts) must not meet the kubelet's own decision about the gateway as it expires.
    authorization: { mode: "Webhook", webhook: { cacheAuthorizedTTL: "1h" } },
    featureGates,
    tlsCertFile: credentials.file("kubelet-serving.crt"),
    tlsPrivateKeyFile: credentials.file("kubelet-serving.key"),
    containerRuntimeEndpoint: `unix://${containerd.socket}`,
    cgroupDriver: "cgroupfs",
    // Clean-up finds what is left by the cgroup.
    cgroupRoot: containerd.cgroupParent,
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    failSwapOn: false,
    failCgroupV1: false,
    localStorageCapacityIsolation: false,
    makeIPTablesUtilChains: false,
    staticPodPath: path.join(root, "manifests"),
    podLogsDir: containerd.podLogs,
    volumePluginDir: path.join(root, "plugins"),
    resolvConf: "/etc/resolv.conf",
    clusterDNS: [nameServer],
    clusterDomain: "cluster.local",
    imageGCHighThresholdPercent: 100,
    evictionHard: {},
  };
  const file = path.join(root, "configuration.json");
  writeFileSync(file, JSON.stringify(configuration));
  const args = [
    `--config=${file}`,
    `--kubeconfig=${kubeconfig}`,
    `--root-dir=${root}`,
    `--cert-dir=${path.join(root, "pki")}`,
    `--hostname-override=${NODE_NAME}`,
    "--cloud-provider=external",
  ];
  return startDaemon("kubelet", path.join(programs, "kubelet"), args, containerd.folder);
}

const WATCHES = "/proc/sys/fs/inotify/max_user_instances";
const MIN_WATCHES = 1024;

/** A cluster has 30 inotify instances; of the usual 128, the fifth on one machine gets none. Not set back: another may live on it. */
export function allowWatches(): void {
  if (Number(readFileSync(WATCHES, "utf8")) < MIN_WATCHES) writeFileSync(WATCHES, `${MIN_WATCHES}`);
}

/** What a kubelet sets at its start, and does not set back. */
const KERNEL_SETTINGS = ["vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops"];

/** Sets the kernel's settings back to what they are now, once called. */
export function rememberKernelSettings(): () => void {
  const files = KERNEL_SETTINGS.map((name) => path.join("/proc/sys", name));
  const values = files.map((file) => readFileSync(file, "utf8"));
  return () => {
    files.forEach((file, index) => {
      writeFileSync(file, values[index] ?? "");
    });
  };
}
