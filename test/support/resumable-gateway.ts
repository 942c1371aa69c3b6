import { Target } from "../../packages/client/src/index.ts";
import type { FakeNode } from "../../packages/lab/src/fake-node/fake-node.ts";
import type { FakeNodeLimits } from "../../packages/lab/src/fake-node/limits.ts";
import type { RunningGateway } from "../../src/app/app.ts";
import { TESTER_TOKEN } from "./gateway-files.ts";
import type { MetricSamples } from "./taken-path.ts";
import { startTestGateway, type TestGateway } from "./test-gateway.ts";

/** The token of another user with the same rights. */
export const OTHER_TOKEN = "other-token";

export interface ResumableGatewayOptions {
  readonly declaresWebSockets?: boolean;
  /** Like `WebNodeOptions.ports`. */
  readonly ports?: ReadonlyMap<number, number>;
  /** The node's limits, if a test needs other ones. */
  readonly nodeLimits?: Partial<FakeNodeLimits>;
  /** The configuration's section `resumption`. */
  readonly resumption?: object;
  readonly shutdownGracePeriod?: string;
  readonly more?: object;
}

/** A gateway over plain HTTP in front of one fake node, and targets for our own clients. */
export class ResumableGateway {
  readonly port: number;
  readonly #gateway: TestGateway;

  private constructor(gateway: TestGateway) {
    this.#gateway = gateway;
    this.port = Number(new URL(gateway.apiServerUrl).port);
  }

  static async start({
    declaresWebSockets = false,
    ports,
    nodeLimits,
    resumption,
    shutdownGracePeriod = "0s",
    more,
  }: ResumableGatewayOptions = {}) {
    const gateway = await startTestGateway({
      scheme: "http",
      fakeNodes: [{ declaresWebSockets, ports, limits: nodeLimits }],
      users: [`${OTHER_TOKEN},other,uid-2,"dev"`],
      timeouts: { shutdownGracePeriod },
      configuration: { ...(resumption && { resumption }), ...more },
    });
    return new ResumableGateway(gateway);
  }

  get node(): FakeNode {
    return this.#gateway.fakeNodes[0] as FakeNode;
  }

  get logged(): readonly string[] {
    return this.#gateway.logLines;
  }

  /** The gateway as a target, through a proxy at that port if one is given. */
  target(port = this.port, token = TESTER_TOKEN): Target {
    return new Target({
      url: `http://127.0.0.1:${port}`,
      proxy: "none",
      headers: () => [["Authorization", `Bearer ${token}`]],
    });
  }

  /** Rewrites the manifests. */
  editCluster(edit: (text: string) => string): void {
    const { files } = this.#gateway;
    files.write("cluster.json", edit(files.read("cluster.json")));
  }

  sessions(): ReturnType<RunningGateway["sessions"]["list"]> {
    return this.#gateway.running.sessions.list();
  }

  metrics(): Promise<MetricSamples> {
    return this.#gateway.readMetrics();
  }

  stop(): Promise<void> {
    return this.#gateway.stop();
  }
}
