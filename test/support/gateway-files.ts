import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { generate } from "selfsigned";

export interface CertificatePair {
  cert: string;
  key: string;
}

/** A certificate for servers on 127.0.0.1 that is its own authority. */
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
  name: string;
  port: number;
  declaredFeatures?: readonly string[];
}

export interface TestPod {
  name: string;
  nodeName: string;
  container: string;
}

export interface GatewayFilesOptions {
  nodes: readonly TestNode[];
  pods: readonly TestPod[];
  /** PEM text of the authority that signed the kubelets' certificates; empty where they speak plain HTTP. */
  kubeletAuthority: string;
  /** More lines of the token file: `token,user,uid,"group1,group2"`. */
  users?: readonly string[];
  /** More objects of the cluster. */
  manifests?: readonly object[];
  /** More of the sections `listeners` and `kubelet`. */
  listeners?: object;
  kubelet?: object;
  /** More sections of the configuration. */
  configuration?: object;
}

/** A folder with everything that a gateway is configured by, and a kubeconfig for its users. */
export class GatewayFiles {
  readonly token = randomBytes(16).toString("hex");
  readonly #folder = mkdtempSync(path.join(tmpdir(), "sluice-gateway-"));
  #certificate = "";

  get configurationFile(): string {
    return path.join(this.#folder, "gateway.json");
  }

  async write(options: GatewayFilesOptions): Promise<void> {
    const server = await selfSignedPair("gateway");
    this.#certificate = server.cert;
    const configuration = {
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      listeners: {
        apiServer: {
          port: 0,
          tls: {
            certFile: this.#file("server.crt", server.cert),
            keyFile: this.#file("server.key", server.key),
          },
        },
        admin: { port: 0 },
        ...options.listeners,
      },
      cluster: { manifests: [this.#file("cluster.json", JSON.stringify(clusterOf(options)))] },
      authentication: {
        tokenAuthFile: this.#file(
          "tokens.csv",
          [`${this.token},tester,tester-uid`, ...(options.users ?? []), ""].join("\n"),
        ),
      },
      kubelet: {
        ...(options.kubeletAuthority !== "" && {
          certificateAuthorityFile: this.#file("kubelet-ca.crt", options.kubeletAuthority),
        }),
        allowedAddresses: ["127.0.0.0/8"],
        ...options.kubelet,
      },
      logging: { level: "silent" },
      ...options.configuration,
    };
    writeFileSync(this.configurationFile, JSON.stringify(configuration));
  }

  /** @returns the path of a kubeconfig for a gateway that listens at `server` */
  writeKubeconfig(server: string, token: string = this.token): string {
    const authority = Buffer.from(this.#certificate).toString("base64");
    const kubeconfig = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "test",
      clusters: [{ name: "test", cluster: { server, "certificate-authority-data": authority } }],
      users: [{ name: "test", user: { token } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test", namespace: "default" } }],
    };
    return this.#file(`kubeconfig-${token.slice(0, 8)}`, JSON.stringify(kubeconfig));
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #file(name: string, text: string): string {
    const file = path.join(this.#folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  }
}

function clusterOf({ nodes, pods, manifests = [] }: GatewayFilesOptions): object {
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
      ...pods.map(({ name, nodeName, container }) => ({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace: "default" },
        spec: { nodeName, containers: [{ name: container, image: "test", stdin: true }] },
        status: { phase: "Running" },
      })),
      ...manifests,
    ],
  };
}
