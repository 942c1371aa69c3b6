import { request } from "node:http";
import type { Socket } from "node:net";
import type { FakeNode } from "../../packages/lab/src/fake-node/fake-node.ts";
import { eventually } from "./eventually.ts";
import { runWebNode } from "./fake-nodes.ts";
import { GatewayFiles, TESTER_TOKEN } from "./gateway-files.ts";
import { type ServedGateway, serveGateway, shiftedClock } from "./served-gateway.ts";

/** The outcome of an attempt to start a session: 101 with its socket, or the refusal's status. */
export interface Attempt {
  readonly code: number;
  readonly ms: number;
  readonly socket?: Socket;
}

export interface QuotaReplica {
  readonly gateway: ServedGateway;
  readonly sessions: Socket[];
}

export interface QuotaReplicasOptions {
  /**
   * One entry for each replica: further fields of its `quotaStore` section and of its
   * configuration, and its clock's offset.
   */
  readonly replicas: readonly {
    readonly store: object;
    readonly configuration?: object;
    readonly clockShiftMs?: number;
  }[];
  readonly maxSessionsPerUser: number;
  /** Files beside each configuration. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Replicas as processes, in front of one node and one quota store. */
export class QuotaReplicas {
  readonly replicas: readonly QuotaReplica[];
  readonly #node: FakeNode;
  readonly #files: readonly GatewayFiles[];

  private constructor(node: FakeNode, files: readonly GatewayFiles[], replicas: readonly QuotaReplica[]) {
    this.#node = node;
    this.#files = files;
    this.replicas = replicas;
  }

  static async start(options: QuotaReplicasOptions): Promise<QuotaReplicas> {
    const node = await runWebNode();
    const files: GatewayFiles[] = [];
    const started = options.replicas.map(async ({ store, configuration = {}, clockShiftMs = 0 }) => {
      const own = new GatewayFiles();
      files.push(own);
      for (const [name, text] of Object.entries(options.files ?? {})) own.write(name, text);
      own.configure({
        nodes: [{ name: node.name, port: node.port }],
        pods: [{ name: "web", nodeName: node.name, container: "main", uid: "web" }],
        timeouts: { shutdownGracePeriod: "0s" },
        configuration: {
          policy: { limits: { maxSessionsPerUser: options.maxSessionsPerUser } },
          quotaStore: store,
          limits: { maxConnectionsPerAddress: 5_000 },
          ...configuration,
        },
      });
      return serveGateway(own.configurationFile, { nodeArguments: shiftedClock(clockShiftMs) });
    });
    const gateways = await Promise.all(started);
    return new QuotaReplicas(
      node,
      files,
      gateways.map((gateway) => ({ gateway, sessions: [] })),
    );
  }

  /**
   * Attempts through one replica after the other, `atOnce` at a time. Sessions that start are kept.
   */
  async attempt(count: number, { atOnce = 50, through = this.replicas } = {}): Promise<readonly Attempt[]> {
    const attempts: Attempt[] = [];
    let next = 0;
    const run = async (): Promise<void> => {
      while (next < count) {
        const replica = through[next % through.length] as QuotaReplica;
        next += 1;
        const attempt = await beginSession(replica.gateway.ready.apiServerUrl);
        attempts.push(attempt);
        if (attempt.socket !== undefined) replica.sessions.push(attempt.socket);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, run));
    return attempts;
  }

  /** Ends sessions of this replica, and waits until it has noticed. */
  async end(replica: QuotaReplica, count: number): Promise<void> {
    for (const socket of replica.sessions.splice(0, count)) socket.destroy();
    await eventually("the sessions are over", async () => {
      const sessions = (await (
        await fetch(`${replica.gateway.adminUrl}/debug/sessions`)
      ).json()) as unknown[];
      return sessions.length <= replica.sessions.length;
    });
  }

  async stop(): Promise<void> {
    for (const { gateway, sessions } of this.replicas) {
      for (const socket of sessions) socket.destroy();
      if (gateway.child.exitCode === null && gateway.child.signalCode === null) await gateway.stop();
    }
    await this.#node.close();
    for (const files of this.#files) files.remove();
  }
}

/** The number of attempts with each status. */
export function byCode(attempts: readonly Attempt[]): Readonly<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (const { code } of attempts) counts[code] = (counts[code] ?? 0) + 1;
  return counts;
}

export async function metricOf({ gateway }: QuotaReplica, name: string): Promise<string | undefined> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  return text
    .split("\n")
    .find((line) => line.startsWith(`${name} `))
    ?.slice(name.length + 1);
}

function beginSession(url: string): Promise<Attempt> {
  const startedMs = performance.now();
  return new Promise((resolve, reject) => {
    const sent = request(
      `${url}/api/v1/namespaces/default/pods/web/exec?command=cat&stdin=true&stdout=true`,
      {
        agent: false,
        headers: {
          Authorization: `Bearer ${TESTER_TOKEN}`,
          Connection: "Upgrade",
          Upgrade: "websocket",
          "Sec-WebSocket-Version": "13",
          "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
          "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
        },
      },
    );
    const ended = (code: number, socket?: Socket): void =>
      resolve({ code, ms: performance.now() - startedMs, ...(socket && { socket }) });
    sent.on("upgrade", (response, socket) => {
      socket.on("error", () => {});
      ended(response.statusCode ?? 0, socket as Socket);
    });
    sent.on("response", (response) => {
      response.resume();
      ended(response.statusCode ?? 0);
    });
    sent.on("error", reject);
    sent.end();
  });
}
