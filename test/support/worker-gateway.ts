import { readFileSync } from "node:fs";
import { get } from "node:http";
import path from "node:path";
import { eventually } from "./eventually.ts";
import { PLAIN_TOKEN, PlainGatewayFiles } from "./plain-gateway.ts";
import { type KubeletScript, ScriptedKubelet } from "./scripted-kubelet.ts";
import { type ServedGateway, serveGateway } from "./served-gateway.ts";
import { V5Client } from "./v5-client.ts";

export interface ListedSession {
  readonly id: string;
  readonly worker: number;
}

interface ReadyLine {
  readonly apiServerUrl: string;
  readonly adminUrl: string;
  readonly kubeletUrl?: string;
  readonly ingress?: { readonly httpUrl: string; readonly httpsUrl: string };
  readonly workers?: number;
}

export interface WorkerGatewayOptions {
  readonly script?: KubeletScript;
  readonly workers?: number;
  readonly gracePeriod?: string;
  readonly more?: Readonly<Record<string, unknown>>;
  /** Further files by name; `more` may name them. Relative names count from the configuration's folder. */
  readonly files?: Readonly<Record<string, string>>;
}

/** `sluice serve` with worker processes over plain HTTP, and one scripted node. */
export class WorkerGateway {
  readonly kubelet: ScriptedKubelet;
  readonly #files: PlainGatewayFiles;
  readonly #served: ServedGateway;

  private constructor(kubelet: ScriptedKubelet, files: PlainGatewayFiles, served: ServedGateway) {
    this.kubelet = kubelet;
    this.#files = files;
    this.#served = served;
  }

  static async start({
    script = {},
    workers = 2,
    gracePeriod = "0s",
    more = {},
    files: further = {},
  }: WorkerGatewayOptions): Promise<WorkerGateway> {
    const kubelet = new ScriptedKubelet(script);
    const files = new PlainGatewayFiles({
      kubeletPort: await kubelet.listen(),
      timeouts: { shutdownGracePeriod: gracePeriod },
      more: { workers, ...more },
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
    return readFileSync(path.join(path.dirname(this.configurationFile), name), "utf8");
  }

  get configurationFile(): string {
    return this.#files.configurationFile;
  }

  get authority(): string {
    return this.#served.authority;
  }

  get exited(): ServedGateway["exited"] {
    return this.#served.exited;
  }

  get primaryPid(): number {
    return this.#served.child.pid as number;
  }

  /** The process that is worker `index` now. */
  pidOf(index: number): number {
    const lines = this.#served.log().split("\n").slice(0, -1);
    const served = lines
      .map((line) => JSON.parse(line) as { msg: string; worker?: number; workerPid?: number })
      .findLast(({ msg, worker }) => msg === "a worker serves" && worker === index);
    if (served?.workerPid === undefined) throw new Error(`worker ${index} never served`);
    return served.workerPid;
  }

  /** The fields of the line that reports where the listeners are. */
  ready(): ReadyLine {
    const line = this.#served
      .log()
      .split("\n")
      .find((each) => each.includes("the gateway is ready"));
    return JSON.parse(line ?? "{}") as ReadyLine;
  }

  /** Where a listener of the front door is. */
  listener(name: "ingress.http" | "ingress.https"): { readonly address: string; readonly port: number } {
    const { httpUrl, httpsUrl } = this.ready().ingress ?? { httpUrl: "", httpsUrl: "" };
    const { hostname, port } = new URL(name === "ingress.http" ? httpUrl : httpsUrl);
    return { address: hostname, port: Number(port) };
  }

  /** JSON lines of all processes so far. */
  log(): string {
    return this.#served.log();
  }

  signal(signal: NodeJS.Signals): void {
    this.#served.child.kill(signal);
  }

  exec(query = "stdin=true&stdout=true"): V5Client {
    return new V5Client(this.authority, query, "exec", { Authorization: `Bearer ${PLAIN_TOKEN}` });
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

  /** Until all of them are in the list. */
  async listed(count: number): Promise<readonly ListedSession[]> {
    return eventually(`${count} sessions run`, async () => {
      const sessions = await this.sessions();
      return sessions.length === count && sessions;
    });
  }

  async stop(): Promise<void> {
    this.signal("SIGTERM");
    await this.#served.exited;
    await this.kubelet.close();
    this.#files.remove();
  }
}
