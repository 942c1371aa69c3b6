import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { Agent, request as sendRequest } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Duplex } from "node:stream";
import { WebSocket } from "ws";
import { Target } from "../../packages/client/src/index.ts";
import { loadKubeconfig } from "../../packages/client/src/kubernetes/kubeconfig.ts";
import { createSelfSignedCertificate } from "../../packages/client/src/net/self-signed.ts";
import { startAgent } from "../../src/app/agent.ts";
import type { Timeouts } from "../../src/config/sections/timeouts.ts";
import { createLogger } from "../../src/observability/logger.ts";
import { collect } from "./kubectl.ts";

type RunningAgent = Awaited<ReturnType<typeof startAgent>>;

export const AGENT_TOKEN = "the-agents-own-token";
export const USER_TOKEN = "the-users-secret-token";

export interface TestAgentOptions {
  /** The API server's URL, with a path or without. */
  readonly server: string;
  /** The kubeconfig's user; by default a token. */
  readonly user?: object;
  /** Further fields of the kubeconfig's cluster. */
  readonly cluster?: object;
  readonly memoryClock?: { now(): number };
  readonly timeouts?: Partial<Timeouts>;
}

export interface AgentAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface AgentRequest {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
}

const certificate = createSelfSignedCertificate();

/** An agent in this process. */
export class TestAgent {
  readonly #agent: RunningAgent;
  readonly #folder: string;
  readonly #tls: Agent;
  readonly #authority: string;
  /** Everything that it reported: notes, traced requests and answers, log lines. */
  readonly told: string[];

  private constructor(agent: RunningAgent, folder: string, ca: string, told: string[]) {
    this.#agent = agent;
    this.#folder = folder;
    this.#authority = ca;
    this.#tls = new Agent({ ca, keepAlive: false });
    this.told = told;
  }

  static async start({
    server,
    user = { token: USER_TOKEN },
    cluster,
    memoryClock,
    timeouts,
  }: TestAgentOptions): Promise<TestAgent> {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-agent-test-"));
    const file = path.join(folder, "config");
    const config = {
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      clusters: [{ name: "c", cluster: { server, ...cluster } }],
      users: [{ name: "u", user }],
    };
    writeFileSync(file, JSON.stringify(config));
    const { certPem: cert, keyPem: key } = await certificate;
    const told: string[] = [];
    const agent = await startAgent({
      kubeconfig: await loadKubeconfig(file),
      listen: { address: "127.0.0.1", port: 0 },
      tls: { cert, key },
      token: AGENT_TOKEN,
      timeouts: { lingerIdleMs: 500, ...timeouts },
      memoryClock,
      logger: createLogger({ level: "debug", destination: { write: (line) => void told.push(line) } }),
      trace: {
        request: (method, url) => void told.push(`${method} ${url}`),
        response: (status) => void told.push(`answered ${status}`),
      },
      note: (text) => void told.push(text),
    });
    return new TestAgent(agent, folder, cert, told);
  }

  /** A target for our own library's clients. */
  target(): Target {
    const headers = () => [["Authorization", `Bearer ${AGENT_TOKEN}`] as const];
    return new Target({ url: this.url, tls: { ca: this.#authority }, proxy: "none", headers });
  }

  get url(): URL {
    return new URL(this.#agent.url);
  }

  async metric(name: string): Promise<string[]> {
    return (await this.#agent.metrics.expose()).split("\n").filter((line) => line.startsWith(name));
  }

  /**
   * A request with the agent's token, unless `headers` has another Authorization. Returns the whole
   * answer.
   */
  async fetch(target: string, options: AgentRequest = {}): Promise<AgentAnswer> {
    const response = await this.open(target, options);
    const body = collect(response);
    await once(response, "end");
    return { status: response.statusCode ?? 0, headers: response.headers, body: body() };
  }

  /** The same, without waiting for the body. */
  open(
    target: string,
    { method = "GET", headers = {}, body = "" }: AgentRequest = {},
  ): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const lines = { Authorization: `Bearer ${AGENT_TOKEN}`, ...headers };
      const request = sendRequest(
        new URL(target, this.url),
        { agent: this.#tls, method, headers: lines },
        resolve,
      );
      request.on("error", reject);
      request.on("upgrade", (_response, socket) => {
        socket.destroy();
        reject(new Error("switched"));
      });
      request.end(body);
    });
  }

  /** An SPDY upgrade. Returns the socket if it was accepted, otherwise the whole answer. */
  upgradeToSpdy(
    target: string,
    versions: readonly string[] = ["v4.channel.k8s.io"],
  ): Promise<{
    readonly status: number;
    readonly headers: IncomingHttpHeaders;
    readonly socket?: Duplex;
    readonly body: string;
  }> {
    return new Promise((resolve, reject) => {
      const request = sendRequest(new URL(target, this.url), {
        agent: this.#tls,
        method: "POST",
        headers: {
          Authorization: `Bearer ${AGENT_TOKEN}`,
          Connection: "Upgrade",
          Upgrade: "SPDY/3.1",
          "X-Stream-Protocol-Version": [...versions],
        },
      });
      request.on("error", reject);
      request.on("upgrade", ({ headers }, socket) => {
        socket.on("error", () => {});
        resolve({ status: 101, headers, socket, body: "" });
      });
      request.on("response", (response) => {
        const body = collect(response);
        const { statusCode: status = 0, headers } = response;
        response.once("end", () => resolve({ status, headers, body: body() }));
        response.once("error", reject);
      });
      request.end();
    });
  }

  /** A WebSocket client by another library. */
  webSocket(target: string, protocols: string | string[], headers: Record<string, string> = {}): WebSocket {
    return new WebSocket(new URL(target, this.url.href.replace("https:", "wss:")), protocols, {
      agent: this.#tls,
      headers: { Authorization: `Bearer ${AGENT_TOKEN}`, ...headers },
      perMessageDeflate: false,
    });
  }

  async stop(): Promise<void> {
    await this.#agent.shutDown();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
