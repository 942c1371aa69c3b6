import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ociArchive } from "../../real/containerd/busybox-images.ts";
import { configOfDockerfile, sluiceLayer } from "../../real/containerd/sluice-image.ts";
import { importImages } from "../../real/containerd/start-containerd.ts";
import { newestContainerd, programOf } from "../../support/real-parts.ts";
import type { ClusterAddresses } from "./start-cluster.ts";

export const CHART = fileURLToPath(new URL("../../../deploy/chart", import.meta.url));
export const IMAGE = "localhost/sluice";
/** The chart's own version, and what an upgrade goes to: the same program by another name. */
export const VERSIONS = { old: "0.1.0", new: "0.1.1" } as const;

/** A cluster, the packaged chart, the image, and the commands of a person who installs them. */
export class ChartedCluster {
  readonly cluster: ClusterAddresses;
  /** Where commands run, and the chart's package is. */
  readonly folder: string;
  readonly #image: Buffer;

  private constructor(cluster: ClusterAddresses, folder: string) {
    this.cluster = cluster;
    this.folder = folder;
    const names = Object.values(VERSIONS).map((version) => `${IMAGE}:${version}`);
    const configuration = configOfDockerfile();
    this.#image = ociArchive(sluiceLayer(), Object.fromEntries(names.map((name) => [name, configuration])));
  }

  static async create(cluster: ClusterAddresses): Promise<ChartedCluster> {
    const charted = new ChartedCluster(cluster, mkdtempSync(path.join(tmpdir(), "sluice-charted-")));
    await charted.helm("package", CHART, "--destination", charted.folder);
    return charted;
  }

  async importImage(): Promise<void> {
    const containerd = newestContainerd();
    if (containerd === undefined) throw new Error("there is no containerd");
    await importImages(containerd, this.cluster.runtimeSocket, this.#image);
  }

  get kubectlProgram(): string {
    return path.join(this.cluster.programs, "kubectl");
  }

  get env(): NodeJS.ProcessEnv {
    return { ...process.env, KUBECONFIG: this.cluster.adminKubeconfig };
  }

  kubectl(...args: string[]): Promise<string> {
    return this.#run(this.kubectlProgram, args);
  }

  helm(...args: string[]): Promise<string> {
    return this.#run(programOf("helm"), args);
  }

  /** With admission of pods by the standard of that name. */
  async createNamespace(name: string, standard: "restricted" | "privileged"): Promise<void> {
    await this.kubectl("create", "namespace", name);
    await this.kubectl("label", "namespace", name, `pod-security.kubernetes.io/enforce=${standard}`);
  }

  async remove(...namespaces: readonly string[]): Promise<void> {
    await this.kubectl("delete", "namespace", "--ignore-not-found", "--wait=false", ...namespaces);
    rmSync(this.folder, { recursive: true });
  }

  async #run(program: string, args: readonly string[]): Promise<string> {
    const options = { env: this.env, cwd: this.folder, timeout: 600_000 };
    try {
      return (await promisify(execFile)(program, [...args], options)).stdout;
    } catch (error) {
      const { stderr, stdout } = error as { stderr: string; stdout: string };
      throw new Error(`${path.basename(program)} ${args.join(" ")}: ${stderr}${stdout}`);
    }
  }
}
