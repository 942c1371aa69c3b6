import type { FakeNode } from "../../packages/lab/src/fake-node/fake-node.ts";
import { type RunningGateway, startGateway } from "../../src/app/app.ts";
import { loadConfiguration } from "../../src/config/load-configuration.ts";
import { createLogger } from "../../src/observability/logger.ts";
import { runWebNode, type WebNodeOptions } from "./fake-nodes.ts";
import {
  type CertificatePair,
  GatewayFiles,
  type GatewayFilesOptions,
  selfSignedPair,
  TESTER_TOKEN,
} from "./gateway-files.ts";
import { type MetricSamples, readMetricsOf } from "./taken-path.ts";

export interface TestGatewayOptions extends GatewayFilesOptions {
  /** How the API listener is served; by default over TLS with a certificate of its own. */
  readonly scheme?: "http" | "https";
  /** Nodes that start before the gateway and end after it; they come before the other `nodes`. */
  readonly fakeNodes?: readonly WebNodeOptions[];
  readonly logLevel?: "debug" | "info";
}

export interface TestGateway {
  readonly running: RunningGateway;
  readonly files: GatewayFiles;
  readonly fakeNodes: readonly FakeNode[];
  /** Empty if the API has no port. */
  readonly apiServerUrl: string;
  /** `127.0.0.1:port` of the API listener. */
  readonly authority: string;
  readonly adminUrl: string;
  /** The front door's URL over TLS; undefined if none is configured. */
  readonly ingressUrl: string | undefined;
  readonly token: string;
  readonly kubeconfig: string;
  readonly logLines: readonly string[];
  /** A kubeconfig for another token of the token file. */
  kubeconfigFor(token: string): string;
  readMetrics(): Promise<MetricSamples>;
  /** What SIGHUP does. */
  reload(): Promise<void>;
  shutDown(): Promise<void>;
  /**
   * Stops the gateway, then its fake nodes, and removes its files. May be called after `shutDown`.
   */
  stop(): Promise<void>;
}

let ownPair: Promise<CertificatePair> | undefined;

/**
 * The gateway in this process, configured by files like `sluice serve`. The only place where tests
 * start one.
 */
export async function startTestGateway(
  options: TestGatewayOptions = {},
  files: GatewayFiles = new GatewayFiles(),
): Promise<TestGateway> {
  const fakeNodes: FakeNode[] = [];
  const logLines: string[] = [];
  const remove = async (): Promise<void> => {
    await Promise.all(fakeNodes.map((node) => node.close()));
    files.remove();
  };
  try {
    for (const each of options.fakeNodes ?? []) fakeNodes.push(await runWebNode(each));
    const isPlain = options.tls === undefined && options.scheme === "http";
    // Generated once for all gateways of this process.
    if (!isPlain) ownPair ??= selfSignedPair("gateway");
    const tls = options.tls ?? (isPlain ? undefined : await ownPair);
    files.configure({ ...options, ...inFrontOf(options, fakeNodes), tls });
    const load = () => loadConfiguration(files.configurationFile);
    const running = await startConfigured(files, logLines, options.logLevel);
    const { apiServerUrl = "" } = running;
    let stopped: Promise<void> | undefined;
    const shutDown = () => {
      stopped ??= running.shutDown();
      return stopped;
    };
    return {
      running,
      files,
      fakeNodes,
      apiServerUrl,
      authority: apiServerUrl && new URL(apiServerUrl).host,
      adminUrl: running.adminUrl,
      ingressUrl: running.ingress?.httpsUrl,
      token: TESTER_TOKEN,
      kubeconfig: files.writeKubeconfig(apiServerUrl),
      logLines,
      kubeconfigFor: (token) => files.writeKubeconfig(apiServerUrl, token),
      readMetrics: () => readMetricsOf(running.adminUrl),
      reload: async () => running.reload(await load()),
      shutDown,
      stop: async () => {
        await shutDown();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Starts a gateway with the files as they are. */
export async function startConfigured(
  { configurationFile }: GatewayFiles,
  logLines: string[],
  level: Parameters<typeof createLogger>[0]["level"] = "debug",
): Promise<RunningGateway> {
  const logger = createLogger({ level, destination: { write: (line) => void logLines.push(line) } });
  return startGateway(await loadConfiguration(configurationFile), logger);
}

function inFrontOf(
  { nodes = [], pods = [], fakeNodes = [], kubeletAuthority }: TestGatewayOptions,
  running: readonly FakeNode[],
): GatewayFilesOptions {
  const authority = kubeletAuthority ?? fakeNodes.find(({ tls }) => tls !== undefined)?.tls?.certPem;
  return {
    ...(authority !== undefined && { kubeletAuthority: authority }),
    nodes: [
      ...running.map(({ name, port, declaredFeatures }) => ({ name, port, declaredFeatures })),
      ...nodes,
    ],
    pods: [
      ...fakeNodes.map(({ name = "node", pod = "web" }) => ({
        name: pod,
        nodeName: name,
        container: "main",
        uid: pod,
      })),
      ...pods,
    ],
  };
}
