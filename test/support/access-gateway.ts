import type { OutgoingHttpHeaders } from "node:http";
import { request } from "node:https";
import type { TLSSocket } from "node:tls";
import { WebSocket } from "ws";
import { GatewayFiles, webOn } from "./gateway-files.ts";
import { endExec, type KubeletScript, ScriptedKubelet, SUCCESS } from "./scripted-kubelet.ts";
import type { MetricSamples } from "./taken-path.ts";
import { issueCertificate, type TestCertificate } from "./test-certificates.ts";
import { startTestGateway, type TestGateway } from "./test-gateway.ts";

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

/** An exec's head as a WebSocket on an HTTP/2 stream (RFC 8441), for the user of the token `t`. */
export const EXEC_HEAD = {
  ":method": "CONNECT",
  ":protocol": "websocket",
  ":scheme": "https",
  ":path": EXEC_PATH,
  ":authority": "a",
  "sec-websocket-version": "13",
  "sec-websocket-protocol": "v5.channel.k8s.io",
  authorization: "Bearer t",
};

/** A kubelet that ends every exec with success at once. */
const succeeding: KubeletScript = {
  onStream: (name, _, session) => {
    if (name === "stdout") endExec(session, SUCCESS);
  },
};

/**
 * The gateway over TLS in front of one scripted node, with requests and sessions of callers that
 * have certificates and headers.
 */
export class AccessGateway {
  readonly kubelet: ScriptedKubelet;
  readonly #gateway: TestGateway;
  readonly #server: TestCertificate;

  private constructor(kubelet: ScriptedKubelet, gateway: TestGateway, server: TestCertificate) {
    this.kubelet = kubelet;
    this.#gateway = gateway;
    this.#server = server;
  }

  /**
   * `configure` gets the folder, in which it may write files, and returns sections of the
   * configuration.
   */
  static async start(
    configure: (folder: string) => Record<string, unknown>,
    node: KubeletScript | { readonly port: number } = succeeding,
  ): Promise<AccessGateway> {
    const kubelet = new ScriptedKubelet("port" in node ? {} : node);
    const kubeletPort = await kubelet.listen();
    const files = new GatewayFiles();
    try {
      const tls = await issueCertificate({ commonName: "gateway" }, undefined, { addresses: ["127.0.0.1"] });
      const { kubelet: section, listeners, ...given } = configure(files.folder);
      // A session that a test leaves open would keep the gateway running for half a minute.
      const configuration = { timeouts: { shutdownGracePeriod: "0s" }, ...given };
      const options = { tls, kubelet: section as object, listeners: listeners as object, configuration };
      const nodePort = "port" in node ? node.port : kubeletPort;
      const gateway = await startTestGateway({ ...webOn(nodePort), ...options }, files);
      return new AccessGateway(kubelet, gateway, tls);
    } catch (error) {
      await kubelet.close();
      files.remove();
      throw error;
    }
  }

  get folder(): string {
    return this.#gateway.files.folder;
  }

  get logLines(): readonly string[] {
    return this.#gateway.logLines;
  }

  readMetrics(): Promise<MetricSamples> {
    return this.#gateway.readMetrics();
  }

  get authority(): string {
    return this.#gateway.authority;
  }

  get trusted(): string {
    return this.#server.cert;
  }

  /** Sends one plain request on its own connection. */
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

  /**
   * Runs an exec over WebSocket v5 to its end. A refused upgrade returns its answer, a session
   * status 101.
   */
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

  /** The result of one check of /readyz, by its component. */
  async isReady(check: string): Promise<boolean> {
    return (await fetch(new URL(`/readyz/${check}`, this.#gateway.adminUrl))).ok;
  }

  async stop(): Promise<void> {
    await this.#gateway.stop();
    await this.kubelet.close();
  }

  #tls({ certificate, headers = {} }: Caller) {
    return { ca: this.#server.cert, ...certificate, headers };
  }
}
