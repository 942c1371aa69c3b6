import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import path from "node:path";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/http/loopback.ts";
import {
  ADDRESSES,
  type CertificateUser,
  type ClusterCredentials,
  certificateOf,
  kubeconfigText,
  subjectOf,
} from "./credentials.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

export interface ControlPlane {
  /** The API server that reaches nodes by their InternalIP. */
  readonly url: string;
  /** A second one on the same etcd, which reaches nodes by their ExternalIP: where Sluice stands for the kubelet. */
  readonly throughSluiceUrl: string;
  readonly daemons: readonly Daemon[];
  /** The path of a kubeconfig for a server, the first API server by default. */
  kubeconfig(user: CertificateUser, server?: string): string;
}

/** In the cluster's folder: what the gateways' users do at the first API server. */
export const AUDIT_LOG = "audit.jsonl";
const AUDIT_POLICY = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [
    { level: "Metadata", users: [subjectOf("sluice"), subjectOf("sluice-constrained")] },
    { level: "None" },
  ],
};

export interface ControlPlaneOptions {
  readonly credentials: ClusterCredentials;
  readonly serviceRange: string;
  /** The program's name. */
  readonly apiServer: string;
}

/** etcd, two kube-apiservers, kube-controller-manager and kube-scheduler, until both API servers are ready. */
export async function startControlPlane(
  programs: string,
  folder: string,
  { credentials, serviceRange, apiServer }: ControlPlaneOptions,
  started: (daemon: Daemon) => void,
): Promise<ControlPlane> {
  const daemons: Daemon[] = [];
  const start = (name: string, program: string, flags: Readonly<Record<string, string>>): Daemon => {
    const args = Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
    const daemon = startDaemon(name, path.join(programs, program), args, folder);
    daemons.push(daemon);
    started(daemon);
    return daemon;
  };
  const host = ADDRESSES.controlPlane;
  const [clientPort, peerPort, port, secondPort] = await freePorts(4);
  const [client, peer] = [`http://${host}:${clientPort}`, `http://${host}:${peerPort}`];
  start("etcd", "etcd", {
    name: "etcd",
    "data-dir": path.join(folder, "etcd"),
    "listen-client-urls": client,
    "advertise-client-urls": client,
    "listen-peer-urls": peer,
    "initial-advertise-peer-urls": peer,
    "initial-cluster": `etcd=${peer}`,
    // Durability is not what is tested, and other tests may be waiting for the disk.
    "unsafe-no-fsync": "true",
  });
  const auditPolicy = path.join(folder, "audit-policy.json");
  writeFileSync(auditPolicy, JSON.stringify(AUDIT_POLICY));
  const flags = apiServerFlags(credentials, client, serviceRange);
  const first = start("apiserver", apiServer, {
    ...flags,
    "secure-port": `${port}`,
    "kubelet-preferred-address-types": "InternalIP",
    "audit-policy-file": auditPolicy,
    "audit-log-path": path.join(folder, AUDIT_LOG),
  });
  const [url, throughSluiceUrl] = [`https://${host}:${port}`, `https://${host}:${secondPort}`];
  const ready = (server: string, daemon: Daemon): Promise<unknown> =>
    eventually(
      `${daemon.name} is ready`,
      async () => {
        daemon.check();
        return (await probe(`${server}/readyz`, credentials)) === 200;
      },
      { timeoutMs: 180_000, intervalMs: 250 },
    );
  await ready(url, first);
  // After the first, which makes the namespaces and roles that both want.
  const second = start("apiserver-2", apiServer, {
    ...flags,
    "secure-port": `${secondPort}`,
    "kubelet-preferred-address-types": "ExternalIP",
  });
  const kubeconfig = (user: CertificateUser, server = url): string => {
    const file = path.join(folder, `${user}${server === url ? "" : "-2"}.kubeconfig`);
    const text = kubeconfigText(server, credentials.folder, certificateOf(user, credentials.folder));
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  for (const [name, user] of [
    ["kube-controller-manager", "controller-manager"],
    ["kube-scheduler", "scheduler"],
  ] as const) {
    const file = kubeconfig(user);
    start(name, name, {
      kubeconfig: file,
      "secure-port": "0",
      "leader-elect": "false",
      ...(user === "controller-manager" && {
        "service-account-private-key-file": credentials.file("service-accounts.key"),
        "cluster-signing-cert-file": credentials.file("ca.crt"),
        "cluster-signing-key-file": credentials.file("ca.key"),
        "root-ca-file": credentials.file("ca.crt"),
        "use-service-account-credentials": "true",
        // autoscaling.test.ts waits for it.
        "horizontal-pod-autoscaler-sync-period": "2s",
      }),
    });
  }
  await ready(throughSluiceUrl, second);
  return { url, throughSluiceUrl, daemons, kubeconfig };
}

function apiServerFlags(
  credentials: ClusterCredentials,
  etcd: string,
  serviceRange: string,
): Record<string, string> {
  return {
    "etcd-servers": etcd,
    "bind-address": ADDRESSES.controlPlane,
    "advertise-address": ADDRESSES.controlPlane,
    "endpoint-reconciler-type": "none",
    "tls-cert-file": credentials.file("apiserver.crt"),
    "tls-private-key-file": credentials.file("apiserver.key"),
    "client-ca-file": credentials.file("ca.crt"),
    "token-auth-file": credentials.file("tokens.csv"),
    "service-account-key-file": credentials.file("service-accounts.pub"),
    "service-account-signing-key-file": credentials.file("service-accounts.key"),
    "service-account-issuer": "https://kubernetes.default.svc",
    "service-cluster-ip-range": serviceRange,
    "authorization-mode": "Node,RBAC",
    "anonymous-auth": "true",
    "enable-admission-plugins": "NodeRestriction",
    "allow-privileged": "true",
    "kubelet-client-certificate": credentials.file("apiserver-kubelet-client.crt"),
    "kubelet-client-key": credentials.file("apiserver-kubelet-client.key"),
    "kubelet-certificate-authority": credentials.file("ca.crt"),
    "requestheader-client-ca-file": credentials.file("ca.crt"),
    "requestheader-allowed-names": subjectOf("front-proxy-client"),
    "requestheader-username-headers": "X-Remote-User",
    "requestheader-group-headers": "X-Remote-Group",
    "requestheader-extra-headers-prefix": "X-Remote-Extra-",
    "proxy-client-cert-file": credentials.file("front-proxy-client.crt"),
    "proxy-client-key-file": credentials.file("front-proxy-client.key"),
  };
}

async function probe(url: string, credentials: ClusterCredentials): Promise<number> {
  const request = get(url, { ca: readFileSync(credentials.file("ca.crt")), timeout: 5_000, agent: false });
  request.on("timeout", () => request.destroy(new Error("no response within 5 s")));
  const [response] = await once(request, "response");
  response.resume();
  return response.statusCode;
}
