import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { generate } from "selfsigned";

/**
 * The token of the user `tester` in the groups dev and ops, which every gateway's token file
 * contains.
 */
export const TESTER_TOKEN = "token-of-the-tester";

export interface CertificatePair {
  cert: string;
  key: string;
}

/** A self-signed certificate for servers on 127.0.0.1. */
export async function selfSignedPair(commonName: string): Promise<CertificatePair> {
  const { cert, private: key } = await generate([{ name: "commonName", value: commonName }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true },
      { name: "subjectAltName", altNames: [{ type: 7, ip: "127.0.0.1" }] },
    ],
  });
  return { cert, key };
}

export interface TestNode {
  readonly name: string;
  readonly port: number;
  readonly declaredFeatures?: readonly string[];
}

export interface TestPod {
  readonly name: string;
  readonly nodeName: string;
  readonly container: string;
  readonly uid?: string;
}

export interface GatewayFilesOptions {
  readonly nodes?: readonly TestNode[];
  readonly pods?: readonly TestPod[];
  /**
   * PEM text of the authority that signed the kubelets' certificates. Absent: kubelets speak plain
   * HTTP.
   */
  readonly kubeletAuthority?: string;
  /** The API listener's certificate. Absent: it speaks plain HTTP. */
  readonly tls?: CertificatePair | undefined;
  /** Further lines of the token file: `token,user,uid,"group1,group2"`. */
  readonly users?: readonly string[];
  /** Further objects of the cluster. */
  readonly manifests?: readonly object[];
  /** Further fields of the sections `listeners`, `kubelet` and `timeouts`. */
  readonly listeners?: object;
  readonly kubelet?: object;
  readonly timeouts?: object;
  /** Further sections of the configuration. */
  readonly configuration?: object;
}

/** The pod `default/web` (container `main`) on the node `node` at this port. */
export function webOn(
  port: number,
  declaredFeatures: readonly string[] = [],
): { nodes: readonly TestNode[]; pods: readonly TestPod[] } {
  return {
    nodes: [{ name: "node", port, declaredFeatures }],
    pods: [{ name: "web", nodeName: "node", container: "main", uid: "u1" }],
  };
}

/**
 * A folder with all files of a gateway's configuration, and kubeconfigs for its users. Names may be
 * relative to it.
 */
export class GatewayFiles {
  readonly folder = mkdtempSync(path.join(tmpdir(), "sluice-gateway-"));
  readonly configurationFile = path.join(this.folder, "gateway.json");
  #certificate = "";

  /** Without options the folder is empty until `configure`. */
  constructor(options?: GatewayFilesOptions) {
    if (options !== undefined) this.configure(options);
  }

  configure(options: GatewayFilesOptions): void {
    const { tls, users = [], kubeletAuthority = "" } = options;
    this.#certificate = tls?.cert ?? "";
    const section = {
      apiServer: {
        port: 0,
        ...(tls && {
          tls: { certFile: this.write("server.crt", tls.cert), keyFile: this.write("server.key", tls.key) },
        }),
      },
      admin: { port: 0 },
      ...options.listeners,
    };
    const configuration = {
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      listeners: section,
      cluster: { manifests: [this.write("cluster.json", JSON.stringify(clusterOf(options)))] },
      authentication: {
        tokenAuthFile: this.write(
          "testers.csv",
          [`${TESTER_TOKEN},tester,uid-1,"dev,ops"`, ...users, ""].join("\n"),
        ),
      },
      authorization: { mode: ["AlwaysAllow"] },
      kubelet: {
        ...(kubeletAuthority === ""
          ? { scheme: "http" }
          : { certificateAuthorityFile: this.write("kubelet-ca.crt", kubeletAuthority) }),
        allowedAddresses: ["127.0.0.0/8"],
        ...options.kubelet,
      },
      timeouts: options.timeouts ?? {},
      logging: { level: "info" },
      ...options.configuration,
    };
    this.write("gateway.json", JSON.stringify(configuration));
  }

  /** Adds or replaces a file; returns its path. */
  write(name: string, text: string): string {
    const file = path.join(this.folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  }

  read(name: string): string {
    return readFileSync(path.join(this.folder, name), "utf8");
  }

  /** @returns the path of a kubeconfig for a gateway that listens at `server` */
  writeKubeconfig(server: string, token: string = TESTER_TOKEN): string {
    const authority = this.#certificate && {
      "certificate-authority-data": Buffer.from(this.#certificate).toString("base64"),
    };
    const kubeconfig = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "test",
      clusters: [{ name: "test", cluster: { server, ...(authority || {}) } }],
      users: [{ name: "test", user: { token } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test", namespace: "default" } }],
    };
    return this.write(`kubeconfig-${token}`, JSON.stringify(kubeconfig));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function clusterOf({ nodes = [], pods = [], manifests = [] }: GatewayFilesOptions): object {
  return {
    apiVersion: "v1",
    kind: "List",
    items: [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } },
      ...nodes.map(({ name, port, declaredFeatures }) => ({
        apiVersion: "v1",
        kind: "Node",
        metadata: { name },
        status: {
          addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
          daemonEndpoints: { kubeletEndpoint: { Port: port } },
          ...(declaredFeatures && { declaredFeatures }),
        },
      })),
      ...pods.map(({ name, nodeName, container, uid }) => ({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace: "default", ...(uid !== undefined && { uid }) },
        spec: { nodeName, containers: [{ name: container, image: "test", stdin: true }] },
        status: { phase: "Running" },
      })),
      ...manifests,
    ],
  };
}
