import { readFileSync } from "node:fs";
import { type RunningGateway, startGateway } from "../../src/app/app.ts";
import { Target } from "../../src/client/index.ts";
import { parseConfiguration } from "../../src/config/configuration.ts";
import { createFakeNode, type FakeNode, runFakeNode } from "../../src/fake-node/index.ts";
import { createLogger } from "../../src/observability/logger.ts";
import { PLAIN_TOKEN, PlainGatewayFiles } from "./plain-gateway.ts";
import { type MetricSamples, parseMetrics } from "./taken-path.ts";

/** Another user, who may do as much. */
export const OTHER_TOKEN = "other-token";

export interface ResumableGatewayOptions {
  readonly declaresWebSockets?: boolean;
  /** Ports of the pod, and the loopback ports where they are; HTTP on 80 and echo on 7 unless given. */
  readonly ports?: ReadonlyMap<number, number>;
  /** The section of the configuration. */
  readonly resumption?: object;
  readonly shutdownGracePeriod?: string;
  readonly more?: object;
}

/** A gateway over plain HTTP in this process, before one fake node with the pod `default/web`. */
export class ResumableGateway {
  readonly node: FakeNode;
  readonly port: number;
  readonly logged: string[];
  readonly #gateway: RunningGateway;
  readonly #files: PlainGatewayFiles;

  private constructor(node: FakeNode, gateway: RunningGateway, files: PlainGatewayFiles, logged: string[]) {
    this.node = node;
    this.#gateway = gateway;
    this.#files = files;
    this.port = Number(new URL(gateway.apiServerUrl).port);
    this.logged = logged;
  }

  static async start({
    declaresWebSockets = false,
    ports,
    resumption,
    shutdownGracePeriod = "0s",
    more,
  }: ResumableGatewayOptions = {}) {
    const command = ["/bin/sh", "-c", "exec cat"];
    const pod = { namespace: "default", name: "web", uid: "u1", containers: [{ name: "main", command }] };
    const options = { name: "node", declaresWebSockets };
    const node = await (ports === undefined
      ? runFakeNode({ ...options, pods: [pod] })
      : createFakeNode({ ...options, pods: [{ ...pod, ports }] }));
    const files = new PlainGatewayFiles({
      kubeletPort: node.port,
      declaredFeatures: node.declaredFeatures,
      timeouts: { shutdownGracePeriod },
      more: { ...(resumption && { resumption }), ...more },
    });
    const tokens = `${PLAIN_TOKEN},tester,uid-1,"dev"\n${OTHER_TOKEN},other,uid-2,"dev"\n`;
    files.write("tokens.csv", tokens);
    const file = files.configurationFile;
    const logged: string[] = [];
    const logger = createLogger({ level: "debug", destination: { write: (line) => void logged.push(line) } });
    const gateway = await startGateway(parseConfiguration(readFileSync(file, "utf8"), file), logger);
    return new ResumableGateway(node, gateway, files, logged);
  }

  /** Through a proxy at that port, if any. */
  target(port = this.port, token = PLAIN_TOKEN): Target {
    return new Target({
      url: `http://127.0.0.1:${port}`,
      proxy: "none",
      headers: () => [["Authorization", `Bearer ${token}`]],
    });
  }

  sessions(): ReturnType<RunningGateway["sessions"]> {
    return this.#gateway.sessions();
  }

  async metrics(): Promise<MetricSamples> {
    return parseMetrics(await (await fetch(new URL("/metrics", this.#gateway.adminUrl))).text());
  }

  async stop(): Promise<void> {
    await this.#gateway.shutDown();
    await this.node.close();
    this.#files.remove();
  }
}
