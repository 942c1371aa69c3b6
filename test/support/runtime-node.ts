import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { GatewayFiles } from "./gateway-files.ts";
import { collect } from "./kubectl.ts";
import { type KubeletScript, ScriptedKubelet } from "./scripted-kubelet.ts";
import { type RuntimeScript, ScriptedRuntime } from "./scripted-runtime.ts";
import type { MetricSamples } from "./taken-path.ts";
import { startTestGateway, type TestGateway } from "./test-gateway.ts";

export const ADMIN_TOKEN = "node-admin-token";
export const READER_TOKEN = "node-reader-token";

export interface RuntimeNodeOptions {
  readonly script?: RuntimeScript;
  /** The runtime's streaming server. */
  readonly streaming?: KubeletScript;
  /** Further fields of `listeners.kubelet`. */
  readonly listener?: object;
  /** Further sections of the configuration. */
  readonly more?: object;
}

export interface TextAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/**
 * RBAC for two users: the node's admin may do everything with `nodes/*`, the reader only `get
 * nodes/proxy`.
 */
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

/**
 * The kubelet listener over plain HTTP, built as by `sluice serve`, in front of a scripted runtime
 * and its streaming server.
 */
export class RuntimeNode {
  readonly runtime: ScriptedRuntime;
  readonly streaming: ScriptedKubelet;
  readonly #gateway: TestGateway;

  private constructor(runtime: ScriptedRuntime, streaming: ScriptedKubelet, gateway: TestGateway) {
    this.runtime = runtime;
    this.streaming = streaming;
    this.#gateway = gateway;
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
    const files = new GatewayFiles();
    const tokens = `${ADMIN_TOKEN},node-admin,1\n${READER_TOKEN},node-reader,2\n`;
    const gateway = await startTestGateway(
      {
        scheme: "http",
        manifests: RBAC.flat(),
        listeners: {
          kubelet: {
            port: 0,
            authentication: { tokenAuthFile: files.write("node-tokens.csv", tokens) },
            authorization: { mode: ["RBAC"] },
            runtime: { endpoint: runtime.endpoint, nodeName: "node-1" },
            ...options.listener,
          },
        },
        timeouts: { shutdownGracePeriod: "0s", runtimeCall: "2s" },
        ...(options.more && { configuration: options.more }),
      },
      files,
    );
    return new RuntimeNode(runtime, streaming, gateway);
  }

  get folder(): string {
    return this.#gateway.files.folder;
  }

  get logLines(): readonly string[] {
    return this.#gateway.logLines;
  }

  /** `127.0.0.1:port` of the kubelet listener. */
  get authority(): string {
    return new URL(this.#gateway.running.kubeletUrl ?? "").host;
  }

  get adminUrl(): string {
    return this.#gateway.adminUrl;
  }

  /**
   * Sends a plain request, or an upgrade with the headers for one. An upgrade that succeeds is
   * closed, and returns 101.
   */
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

  /** What SIGHUP does. */
  reload(): Promise<void> {
    return this.#gateway.reload();
  }

  metrics(): Promise<MetricSamples> {
    return this.#gateway.readMetrics();
  }

  async stop(): Promise<void> {
    await this.#gateway.stop();
    await this.streaming.close();
    this.runtime.remove();
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
