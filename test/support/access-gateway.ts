import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { OutgoingHttpHeaders } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TLSSocket } from "node:tls";
import { WebSocket } from "ws";
import { startGateway } from "../../src/app/app.ts";
import { parseConfiguration } from "../../src/config/configuration.ts";
import { createLogger } from "../../src/observability/logger.ts";
import { endExec, type KubeletScript, ScriptedKubelet, SUCCESS } from "./scripted-kubelet.ts";
import { issueCertificate, type TestCertificate } from "./test-certificates.ts";

export interface Caller {
  readonly body?: string;
  readonly certificate?: TestCertificate | undefined;
  readonly headers?: OutgoingHttpHeaders;
}

export interface Answer {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string;
}

export const EXEC_PATH = "/api/v1/namespaces/default/pods/web/exec?command=id&stdout=true&container=main";

/** A kubelet that ends every exec well at once. */
const succeeding: KubeletScript = {
  onStream: (name, _, session) => {
    if (name === "stdout") endExec(session, SUCCESS);
  },
};

/** The gateway over TLS as `sluice serve` composes it, one scripted node behind it, and its files in a folder of its own. */
export class AccessGateway {
  readonly folder: string;
  readonly kubelet: ScriptedKubelet;
  readonly logLines: string[];
  readonly #gateway: Awaited<ReturnType<typeof startGateway>>;
  readonly #server: TestCertificate;

  private constructor(
    folder: string,
    kubelet: ScriptedKubelet,
    gateway: Awaited<ReturnType<typeof startGateway>>,
    server: TestCertificate,
    logLines: string[],
  ) {
    this.folder = folder;
    this.kubelet = kubelet;
    this.#gateway = gateway;
    this.#server = server;
    this.logLines = logLines;
  }

  /** `configure` gets the folder, in which it may write files, and returns sections of the configuration. */
  static async start(
    configure: (folder: string) => Record<string, unknown>,
    node: KubeletScript | { readonly port: number } = succeeding,
  ): Promise<AccessGateway> {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-access-"));
    const kubelet = new ScriptedKubelet("port" in node ? {} : node);
    const kubeletPort = await kubelet.listen();
    try {
      const server = await issueCertificate({ commonName: "gateway" }, undefined, {
        addresses: ["127.0.0.1"],
      });
      writeFileSync(path.join(folder, "server.crt"), server.cert);
      writeFileSync(path.join(folder, "server.key"), server.key);
      writeFileSync(
        path.join(folder, "cluster.json"),
        JSON.stringify(clusterOn("port" in node ? node.port : kubeletPort)),
      );
      const { kubelet: kubeletSection, listeners, ...sections } = configure(folder);
      const configuration = {
        apiVersion: "sluice.dev/v1alpha1",
        kind: "GatewayConfiguration",
        listeners: {
          apiServer: { port: 0, tls: { certFile: "server.crt", keyFile: "server.key" } },
          admin: { port: 0 },
          ...(listeners as object),
        },
        cluster: { manifests: ["cluster.json"] },
        kubelet: { scheme: "http", allowedAddresses: ["127.0.0.0/8"], ...(kubeletSection as object) },
        ...sections,
      };
      const file = path.join(folder, "gateway.json");
      const logLines: string[] = [];
      const logger = createLogger({
        level: "debug",
        destination: { write: (line) => void logLines.push(line) },
      });
      const gateway = await startGateway(parseConfiguration(JSON.stringify(configuration), file), logger);
      return new AccessGateway(folder, kubelet, gateway, server, logLines);
    } catch (error) {
      await kubelet.close();
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  get authority(): string {
    return new URL(this.#gateway.apiServerUrl).host;
  }

  get trusted(): string {
    return this.#server.cert;
  }

  /** One plain request on a connection of its own. */
  get(
    target: string,
    caller: Caller = {},
    method = "GET",
    isVerified = true,
  ): Promise<Answer & { servedBy: string }> {
    return new Promise((resolve, reject) => {
      const outgoing = request(`https://${this.authority}${target}`, {
        ...this.#tls(caller),
        rejectUnauthorized: isVerified,
        method,
        agent: false,
      });
      outgoing.on("error", reject);
      outgoing.on("response", (response) => {
        const servedBy = (response.socket as TLSSocket).getPeerCertificate().subject.CN as string;
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
            servedBy,
          }),
        );
      });
      outgoing.end(caller.body);
    });
  }

  /** An exec over WebSocket v5, to its end. A refused upgrade gives its answer, a session status 101. */
  exec(
    caller: Caller = {},
    protocols: string[] = ["v5.channel.k8s.io"],
    target = EXEC_PATH,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(`wss://${this.authority}${target}`, protocols, {
        ...this.#tls(caller),
        perMessageDeflate: false,
      });
      let body = "";
      let headers: OutgoingHttpHeaders = {};
      socket.on("upgrade", (response) => {
        headers = response.headers;
      });
      socket.on("message", (data: Buffer) => {
        if (data[0] === 3) body += data.subarray(1).toString();
      });
      socket.on("close", () => resolve({ status: 101, headers, body }));
      socket.on("unexpected-response", (_, response) => {
        response.on("data", (chunk: Buffer) => {
          body += chunk.toString();
        });
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
        );
        response.on("error", reject);
      });
      socket.on("error", (error) => reject(error));
    });
  }

  async metric(name: string): Promise<string[]> {
    return (await this.metrics()).split("\n").filter((line) => line.startsWith(name));
  }

  async metrics(): Promise<string> {
    return (await fetch(new URL("/metrics", this.#gateway.adminUrl))).text();
  }

  async stop(): Promise<void> {
    await this.#gateway.shutDown();
    await this.kubelet.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #tls({ certificate, headers = {} }: Caller) {
    return { ca: this.#server.cert, ...certificate, headers };
  }
}

function clusterOn(port: number): object {
  return {
    apiVersion: "v1",
    kind: "List",
    items: [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } },
      {
        apiVersion: "v1",
        kind: "Node",
        metadata: { name: "node" },
        status: {
          addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
          daemonEndpoints: { kubeletEndpoint: { Port: port } },
        },
      },
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "web", namespace: "default" },
        spec: { nodeName: "node", containers: [{ name: "main", image: "test" }] },
        status: { phase: "Running" },
      },
    ],
  };
}
