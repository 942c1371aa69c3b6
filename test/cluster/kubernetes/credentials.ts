import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import path from "node:path";
import { issueCertificate, type TestCertificate } from "../../support/test-certificates.ts";

/** Addresses of the machine's loopback network, so that nothing here is reached from elsewhere. */
export const ADDRESSES = { controlPlane: "127.0.80.1", kubelet: "127.0.80.11", sluiceNode: "127.0.80.12" };
export const NODE_NAME = "worker-1";
/** Of the API server, for pods. */
export const SERVICE_NAME = "kubernetes.default.svc";

/** The serving certificate of session-metrics-api.ts. */
export const METRICS_SERVICE = "session-metrics.default.svc";

/** An address of the machine beyond loopback: API servers proxy to no loopback address. Undefined where it has none. */
export function machineAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses);
  return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address;
}

/** Tokens of the API server's static token file, with their users and groups. */
export const TOKENS = {
  admin: { token: "token-admin", user: "root-by-token", group: "system:masters" },
  dev: { token: "token-dev", user: "dave", group: "devs" },
  viewer: { token: "token-viewer", user: "vera", group: "viewers" },
  none: { token: "token-none", user: "nick", group: "strangers" },
  /** May impersonate, and nothing else. */
  impersonator: { token: "token-impersonator", user: "ivy", group: "impersonators" },
  /** May be dave of the devs, or a service account, for some requests. */
  constrained: { token: "token-constrained", user: "carol", group: "constrained-impersonators" },
} as const;
export type TokenUser = keyof typeof TOKENS;

const SUBJECTS = {
  "apiserver-kubelet-client": {
    commonName: "kube-apiserver-kubelet-client",
    organizations: ["kubeadm:apiserver-kubelet"],
  },
  admin: { commonName: "kubernetes-admin", organizations: ["system:masters"] },
  alice: { commonName: "alice", organizations: ["devs"] },
  "controller-manager": { commonName: "system:kube-controller-manager" },
  /** The API server's to the servers of aggregated APIs. */
  "front-proxy-client": { commonName: "front-proxy-client" },
  scheduler: { commonName: "system:kube-scheduler" },
  kubelet: { commonName: `system:node:${NODE_NAME}`, organizations: ["system:nodes"] },
  sluice: { commonName: "sluice-gateway" },
  /** A gateway that holds the rights of constrained impersonation alone. */
  "sluice-constrained": { commonName: "sluice-constrained" },
} as const;
export type CertificateUser = keyof typeof SUBJECTS;

/** The user's name to Kubernetes. */
export function subjectOf(user: CertificateUser): string {
  return SUBJECTS[user].commonName;
}

/** The files of a cluster's credentials: one authority, certificates, the key of service accounts, tokens. */
export class ClusterCredentials {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** `serviceAddress` is that of `kubernetes.default.svc`. */
  static async write(folder: string, serviceAddress: string): Promise<ClusterCredentials> {
    const credentials = new ClusterCredentials(folder);
    await credentials.#write(serviceAddress);
    return credentials;
  }

  /** `NAME.crt`, `NAME.key`, `ca.crt`, `service-accounts.pub`, `tokens.csv` and so on. */
  file(name: string): string {
    return path.join(this.folder, name);
  }

  async #write(serviceAddress: string): Promise<void> {
    const authority = await issueCertificate({ commonName: "cluster-ca" });
    this.#writePair("ca", authority);
    for (const [name, subject] of Object.entries(SUBJECTS)) {
      this.#writePair(name, await issueCertificate(subject, authority, { usage: "client" }));
    }
    const asMetrics = { usage: "server", names: [METRICS_SERVICE] } as const;
    this.#writePair(
      "session-metrics",
      await issueCertificate({ commonName: METRICS_SERVICE }, authority, asMetrics),
    );
    const addresses = [
      "127.0.0.1",
      serviceAddress,
      ...Object.values(ADDRESSES),
      machineAddress() ?? [],
    ].flat();
    for (const commonName of ["apiserver", `system:node:${NODE_NAME}`, "sluice-serving"]) {
      const name = commonName.startsWith("system:node") ? "kubelet-serving" : commonName;
      this.#writePair(
        name,
        await issueCertificate({ commonName }, authority, {
          usage: "server",
          addresses,
          names: [SERVICE_NAME, NODE_NAME],
        }),
      );
    }
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    this.#write0600("service-accounts.key", privateKey.export({ type: "pkcs8", format: "pem" }) as string);
    this.#write0600("service-accounts.pub", publicKey.export({ type: "spki", format: "pem" }) as string);
    const lines = Object.values(TOKENS).map(
      ({ token, user, group }, index) => `${token},${user},uid-${index},"${group}"\n`,
    );
    this.#write0600("tokens.csv", lines.join(""));
  }

  #writePair(name: string, { cert, key }: TestCertificate): void {
    this.#write0600(`${name}.crt`, cert);
    this.#write0600(`${name}.key`, key);
  }

  #write0600(name: string, text: string): void {
    writeFileSync(this.file(name), text, { mode: 0o600 });
  }
}

/** A kubeconfig's text for a server that the cluster's authority has signed. */
export function kubeconfigText(server: string, credentialsFolder: string, user: object): string {
  const cluster = { server, "certificate-authority": path.join(credentialsFolder, "ca.crt") };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    clusters: [{ name: "test", cluster }],
    users: [{ name: "test", user }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test", namespace: "default" } }],
  });
}

/** The `user` of a kubeconfig. */
export function certificateOf(name: CertificateUser, credentialsFolder: string): object {
  const file = (extension: string): string => path.join(credentialsFolder, `${name}.${extension}`);
  return { "client-certificate": file("crt"), "client-key": file("key") };
}
