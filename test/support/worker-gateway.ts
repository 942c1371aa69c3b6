import { get } from "node:http";
import { eventually } from "./eventually.ts";
import { type CertificatePair, GatewayFiles, TESTER_TOKEN, webOn } from "./gateway-files.ts";
import { type KubeletScript, ScriptedKubelet } from "./scripted-kubelet.ts";
import { type ReadyLine, type ServedGateway, serveGateway } from "./served-gateway.ts";
import { V5Client } from "./v5-client.ts";

export interface ListedSession {
  readonly id: string;
  readonly worker: number;
}

export interface WorkerGatewayOptions {
  readonly script?: KubeletScript;
  readonly workers?: number;
  /** The API listener's certificate, for clients that send tokens only over TLS. */
  readonly tls?: CertificatePair;
  readonly gracePeriod?: string;
  readonly more?: Readonly<Record<string, unknown>>;
  /**
   * Further files by name, which `more` may use. Relative names start at the configuration's
   * folder.
   */
  readonly files?: Readonly<Record<string, string>>;
}

/**
 * `sluice serve` with worker processes, over plain HTTP unless `tls` is given, and one scripted
 * node.
 */
export class WorkerGateway {
  readonly kubelet: ScriptedKubelet;
  readonly #files: GatewayFiles;
  readonly #served: ServedGateway;

  private constructor(kubelet: ScriptedKubelet, files: GatewayFiles, served: ServedGateway) {
    this.kubelet = kubelet;
    this.#files = files;
    this.#served = served;
  }

  static async start({
    script = {},
    workers = 2,
    tls,
    gracePeriod = "0s",
    more = {},
    files: further = {},
  }: WorkerGatewayOptions): Promise<WorkerGateway> {
    const kubelet = new ScriptedKubelet(script);
    const files = new GatewayFiles({
      ...webOn(await kubelet.listen()),
      tls,
      timeouts: { shutdownGracePeriod: gracePeriod },
      configuration: { workers, ...more },
    });
    for (const [name, text] of Object.entries(further)) files.write(name, text);
    try {
      return new WorkerGateway(kubelet, files, await serveGateway(files.configurationFile));
    } catch (error) {
      await kubelet.close();
      files.remove();
      throw error;
    }
  }

  /** Replaces a file of the configuration's folder; returns its path. */
  write(name: string, text: string): string {
    return this.#files.write(name, text);
  }

  read(name: string): string {
    return this.#files.read(name);
  }

  get configurationFile(): string {
    return this.#files.configurationFile;
  }

  get authority(): string {
    return this.#served.authority;
  }

  kubeconfig(): string {
    return this.#files.writeKubeconfig(this.ready().apiServerUrl);
  }

  get exited(): ServedGateway["exited"] {
    return this.#served.exited;
  }

  get primaryPid(): number {
    return this.#served.child.pid as number;
  }

  /** The id of the process that currently is worker `index`. */
  pidOf(index: number): number {
    const served = this.#served
      .logLines()
      .findLast(({ msg, worker }) => msg === "a worker serves" && worker === index) as
      | { readonly workerPid?: number }
      | undefined;
    if (served?.workerPid === undefined) throw new Error(`worker ${index} never served`);
    return served.workerPid;
  }

  ready(): ReadyLine {
    return this.#served.ready;
  }

  /** The address of one of the front door's listeners. */
  listener(name: "ingress.http" | "ingress.https"): { readonly address: string; readonly port: number } {
    const { httpUrl, httpsUrl } = this.ready().ingress ?? { httpUrl: "", httpsUrl: "" };
    const { hostname, port } = new URL(name === "ingress.http" ? httpUrl : httpsUrl);
    return { address: hostname, port: Number(port) };
  }

  /** Log lines (JSON) of all processes so far. */
  log(): string {
    return this.#served.log();
  }

  signal(signal: NodeJS.Signals): void {
    this.#served.child.kill(signal);
  }

  exec(query = "stdin=true&stdout=true"): V5Client {
    return new V5Client(this.authority, query, "exec", { Authorization: `Bearer ${TESTER_TOKEN}` });
  }

  async sessions(): Promise<readonly ListedSession[]> {
    return JSON.parse(await this.admin("/debug/sessions")) as ListedSession[];
  }

  async metric(line: string): Promise<number> {
    const found = (await this.admin("/metrics")).split("\n").find((text) => text.startsWith(`${line} `));
    return Number(found?.split(" ").at(-1));
  }

  admin(page: string): Promise<string> {
    return new Promise((resolve, reject) => {
      get(`${this.#served.adminUrl}${page}`, { agent: false }, async (response) => {
        let text = "";
        for await (const part of response) text += part;
        resolve(text);
      }).on("error", reject);
    });
  }

  /** Waits until the list contains all of them. */
  async listed(count: number): Promise<readonly ListedSession[]> {
    return eventually(`${count} sessions run`, async () => {
      const sessions = await this.sessions();
      return sessions.length === count && sessions;
    });
  }

  async stop(): Promise<void> {
    await this.#served.stop();
    await this.kubelet.close();
    this.#files.remove();
  }
}
