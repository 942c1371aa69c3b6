import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { startGateway } from "../../src/app/app.ts";
import { parseConfiguration } from "../../src/config/configuration.ts";
import { createLogger } from "../../src/observability/logger.ts";
import { collect } from "./kubectl.ts";
import { type KubeletScript, ScriptedKubelet } from "./scripted-kubelet.ts";
import { type RuntimeScript, ScriptedRuntime } from "./scripted-runtime.ts";
import { type MetricSamples, parseMetrics } from "./taken-path.ts";

export const ADMIN_TOKEN = "node-admin-token";
export const READER_TOKEN = "node-reader-token";

export interface RuntimeNodeOptions {
  readonly script?: RuntimeScript;
  /** The runtime's streaming server. */
  readonly streaming?: KubeletScript;
  /** More of `listeners.kubelet`. */
  readonly listener?: object;
  /** More sections of the configuration. */
  readonly more?: object;
}

export interface TextAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** RBAC for two users: the node's admin may everything with `nodes/*`, the reader may `get nodes/proxy` alone. */
const RBAC = [
  role("node-admin", ["*"], ["nodes/proxy", "nodes/stats", "nodes/log", "nodes/metrics"]),
  role("node-reader", ["get"], ["nodes/proxy"]),
];

function role(name: string, verbs: string[], resources: string[]) {
  const apiVersion = "rbac.authorization.k8s.io/v1";
  return [
    { apiVersion, kind: "ClusterRole", metadata: { name }, rules: [{ apiGroups: [""], verbs, resources }] },
    {
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata: { name },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name }],
    },
  ];
}

/** A pod `default/web` (uid `web-uid`) with a running container `main`, as CRI lists it. */
export const WEB_SANDBOX = sandbox("s1");
export const MAIN_CONTAINER = container("c1");

export function sandbox(id: string, more: object = {}) {
  return {
    id,
    metadata: { name: "web", uid: "web-uid", namespace: "default", attempt: 0 },
    state: 0,
    createdAt: 1_767_323_045_000_000_000,
    labels: {
      "io.kubernetes.pod.name": "web",
      "io.kubernetes.pod.namespace": "default",
      "io.kubernetes.pod.uid": "web-uid",
      app: "web",
    },
    ...more,
  };
}

export function container(id: string, more: object = {}) {
  return {
    id,
    podSandboxId: "s1",
    metadata: { name: "main", attempt: 0 },
    image: { image: "localhost/busybox:test" },
    imageRef: "sha256:1",
    state: 1,
    createdAt: 1_767_323_046_000_000_000,
    labels: { "io.kubernetes.container.name": "main" },
    ...more,
  };
}

/** The kubelet listener over plain HTTP, composed as `sluice serve` does, in front of a scripted runtime and its streaming server. */
export class RuntimeNode {
  readonly runtime: ScriptedRuntime;
  readonly streaming: ScriptedKubelet;
  readonly logLines: string[];
  readonly folder: string;
  readonly #gateway: Awaited<ReturnType<typeof startGateway>>;

  private constructor(
    runtime: ScriptedRuntime,
    streaming: ScriptedKubelet,
    gateway: Awaited<ReturnType<typeof startGateway>>,
    folder: string,
    logLines: string[],
  ) {
    this.runtime = runtime;
    this.streaming = streaming;
    this.#gateway = gateway;
    this.folder = folder;
    this.logLines = logLines;
  }

  static async start(options: RuntimeNodeOptions = {}): Promise<RuntimeNode> {
    const streaming = new ScriptedKubelet(options.streaming ?? {});
    const port = await streaming.listen();
    let minted = 0;
    const mint = (kind: string) => () => ({ url: `http://127.0.0.1:${port}/${kind}/secret-${++minted}` });
    const runtime = new ScriptedRuntime({
      Version: () => ({ runtimeName: "scripted", runtimeVersion: "1" }),
      ListPodSandbox: () => ({ items: [WEB_SANDBOX] }),
      ListContainers: () => ({ containers: [MAIN_CONTAINER] }),
      Exec: mint("exec"),
      Attach: mint("attach"),
      PortForward: mint("portforward"),
      ...options.script,
    });
    await runtime.start();
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-runtime-node-"));
    const write = (name: string, text: string) => {
      writeFileSync(path.join(folder, name), text);
      return name;
    };
    const configuration = {
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      listeners: {
        apiServer: { port: 0 },
        admin: { port: 0 },
        kubelet: {
          port: 0,
          authentication: {
            tokenAuthFile: write(
              "tokens.csv",
              `${ADMIN_TOKEN},node-admin,1\n${READER_TOKEN},node-reader,2\n`,
            ),
          },
          authorization: { mode: ["RBAC"] },
          runtime: { endpoint: runtime.endpoint, nodeName: "node-1" },
          ...options.listener,
        },
      },
      cluster: {
        manifests: [
          write("rbac.json", JSON.stringify({ apiVersion: "v1", kind: "List", items: RBAC.flat() })),
        ],
      },
      timeouts: { shutdownGracePeriod: "0s", runtimeCall: "2s" },
      ...options.more,
    };
    const logLines: string[] = [];
    const logger = createLogger({
      level: "debug",
      destination: { write: (line) => void logLines.push(line) },
    });
    const file = path.join(folder, "gateway.json");
    const gateway = await startGateway(parseConfiguration(JSON.stringify(configuration), file), logger);
    return new RuntimeNode(runtime, streaming, gateway, folder, logLines);
  }

  /** `127.0.0.1:port` of the kubelet listener. */
  get authority(): string {
    return new URL(this.#gateway.kubeletUrl ?? "").host;
  }

  get adminUrl(): string {
    return this.#gateway.adminUrl;
  }

  /** A plain request, or an upgrade with the headers for one; an upgrade that succeeds is closed and answers 101. */
  async ask(
    pathAndQuery: string,
    { method = "GET", token = ADMIN_TOKEN, headers = {} }: AskOptions = {},
  ): Promise<TextAnswer> {
    const sent = request(`http://${this.authority}${pathAndQuery}`, {
      method,
      agent: false,
      headers: { ...(token !== "" && { Authorization: `Bearer ${token}` }), ...headers },
    });
    sent.end();
    const upgraded = once(sent, "upgrade").then(([response, socket]) => {
      socket.destroy();
      return { status: 101, headers: (response as IncomingMessage).headers, body: "" };
    });
    const answered = once(sent, "response").then(async ([response]: IncomingMessage[]) => {
      const body = collect(response as IncomingMessage);
      await once(response as IncomingMessage, "end");
      return { status: response?.statusCode ?? 0, headers: response?.headers ?? {}, body: body() };
    });
    upgraded.catch(() => {});
    answered.catch(() => {});
    return await Promise.race([upgraded, answered]);
  }

  async metrics(): Promise<MetricSamples> {
    return parseMetrics(await (await fetch(new URL("/metrics", this.adminUrl))).text());
  }

  async stop(): Promise<void> {
    await this.#gateway.shutDown();
    await this.streaming.close();
    this.runtime.remove();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface AskOptions {
  readonly method?: string;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export const SPDY_UPGRADE = {
  Connection: "Upgrade",
  Upgrade: "SPDY/3.1",
  "X-Stream-Protocol-Version": "v4.channel.k8s.io",
} as const;

export const webSocketUpgrade = (protocol: string) => ({
  Connection: "Upgrade",
  Upgrade: "websocket",
  "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Version": "13",
  "Sec-WebSocket-Protocol": protocol,
});
