import { lstat, mkdir, open, rm, rmdir, stat } from "node:fs/promises";
import path from "node:path";
import type { SelfSignedCertificate } from "@sluice/client/internal/net/self-signed";

/** The contents of a demo's files. */
interface DemoFiles {
  /** The API-server leg's certificate, which kubectl trusts. */
  readonly serverCertificate: SelfSignedCertificate;
  /** The nodes' certificate, which the gateway trusts. */
  readonly nodeCertificate: SelfSignedCertificate;
  /** The gateway's client certificate; the nodes run commands only for the gateway. */
  readonly kubeletClientCertificate: SelfSignedCertificate;
  readonly token: string;
  readonly manifests: string;
  readonly address: string;
  readonly port: number;
}

const OWNER_ONLY = 0o600;

/** Every file that a demo writes. */
const FILE_NAMES = [
  "server.crt",
  "server.key",
  "node-ca.crt",
  "kubelet-client.crt",
  "kubelet-client.key",
  "tokens.csv",
  "cluster.yaml",
  "gateway.yaml",
  "admin-url",
  "kubeconfig",
] as const;

/** A file with a demo's name exists, and no demo of this process wrote it. */
export class DemoFolderTakenError extends Error {
  override readonly name = "DemoFolderTakenError";

  constructor(file: string) {
    super(
      `${file} is there already, of another demo or not of one: nothing was changed; name another folder`,
    );
  }
}

/**
 * Creates a folder and its parents; false if it exists. Node's recursive mkdir hangs if the system
 * forbids a folder below an existing one, as in /proc.
 */
async function makeFolder(folder: string): Promise<boolean> {
  const make = () => mkdir(folder, { mode: 0o700 }).then(() => true);
  try {
    return await make();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && (await stat(folder)).isDirectory()) return false;
    const parent = path.dirname(folder);
    if (code === "ENOENT" && parent !== folder && (await makeFolder(parent))) return await make();
    throw error;
  }
}

/** The folder of one demo: a realistic gateway configuration, and kubectl's files. */
export class DemoFolder {
  readonly path: string;
  readonly #isOurs: boolean;
  readonly #written: string[] = [];

  private constructor(folder: string, isOurs: boolean) {
    this.path = folder;
    this.#isOurs = isOurs;
  }

  /**
   * Creates the folder if it is missing; only then is it removed at the end. Throws
   * DemoFolderTakenError if it contains a file with a demo's name.
   */
  static async open(folder: string): Promise<DemoFolder> {
    const absolute = path.resolve(folder);
    const isOurs = await makeFolder(absolute);
    for (const name of isOurs ? [] : FILE_NAMES) {
      const file = path.join(absolute, name);
      if ((await lstat(file).catch(() => undefined)) !== undefined) throw new DemoFolderTakenError(file);
    }
    return new DemoFolder(absolute, isOurs);
  }

  get kubeconfig(): string {
    return path.join(this.path, "kubeconfig");
  }

  get configuration(): string {
    return path.join(this.path, "gateway.yaml");
  }

  /** Writes every file that the gateway reads. */
  async writeConfiguration(files: DemoFiles): Promise<void> {
    const { serverCertificate, nodeCertificate, kubeletClientCertificate } = files;
    await this.#write("server.crt", serverCertificate.certPem);
    await this.#write("server.key", serverCertificate.keyPem);
    await this.#write("node-ca.crt", nodeCertificate.certPem);
    await this.#write("kubelet-client.crt", kubeletClientCertificate.certPem);
    await this.#write("kubelet-client.key", kubeletClientCertificate.keyPem);
    await this.#write("tokens.csv", `${files.token},demo,demo-uid,"system:masters"\n`);
    await this.#write("cluster.yaml", files.manifests);
    await this.#write("gateway.yaml", configurationText(files));
  }

  /** Writes kubectl's files, once the gateway's address is known. */
  async writeAccess(
    apiServerUrl: string,
    adminUrl: string,
    { serverCertificate, token }: DemoFiles,
  ): Promise<void> {
    const authority = Buffer.from(serverCertificate.certPem).toString("base64");
    await this.#write("admin-url", `${adminUrl}\n`);
    await this.#write("kubeconfig", kubeconfigText(apiServerUrl, authority, token));
  }

  /** Removes the demo's own files, and keeps all others. */
  async remove(): Promise<void> {
    for (const file of this.#written) await rm(file, { force: true });
    if (this.#isOurs) await rmdir(this.path).catch(ignoreOthersFiles);
  }

  /** Never overwrites a file or follows a link: another demo may have started in the same folder. */
  async #write(name: (typeof FILE_NAMES)[number], text: string): Promise<void> {
    const file = path.join(this.path, name);
    const handle = await open(file, "wx", OWNER_ONLY).catch((error: NodeJS.ErrnoException) => {
      throw error.code === "EEXIST" ? new DemoFolderTakenError(file) : error;
    });
    this.#written.push(file);
    try {
      await handle.writeFile(text);
    } finally {
      await handle.close();
    }
  }
}

function ignoreOthersFiles(error: NodeJS.ErrnoException): void {
  // Some systems report EEXIST; a folder that is already gone needs no removal.
  if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes(error.code ?? "")) throw error;
}

function configurationText({ address, port }: DemoFiles): string {
  return `# The demo's gateway. Any gateway is configured like this: sluice serve --config gateway.yaml
apiVersion: sluice.dev/v1alpha1
kind: GatewayConfiguration
listeners:
  apiServer:
    address: ${JSON.stringify(address)}
    port: ${port}
    tls: { certFile: server.crt, keyFile: server.key }
  admin: { address: 127.0.0.1, port: 0 }
cluster:
  manifests: [cluster.yaml]
authentication:
  tokenAuthFile: tokens.csv
# The demo has one user. Elsewhere: [RBAC] or [Webhook].
authorization:
  mode: [AlwaysAllow]
kubelet:
  certificateAuthorityFile: node-ca.crt
  clientCertificateFile: kubelet-client.crt
  clientKeyFile: kubelet-client.key
  # The demo's nodes are on this machine, where no node of a cluster would be looked for.
  allowedAddresses: [127.0.0.0/8]
logging: { level: warn }
`;
}

function kubeconfigText(server: string, authority: string, token: string): string {
  return `apiVersion: v1
kind: Config
current-context: sluice-demo
clusters:
  - name: sluice-demo
    cluster:
      server: ${server}
      certificate-authority-data: ${authority}
users:
  - name: demo
    user:
      token: ${token}
contexts:
  - name: sluice-demo
    context: { cluster: sluice-demo, user: demo, namespace: default }
`;
}
