import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { type RunningGateway, startGateway } from "../../src/app/app.ts";
import { parseConfiguration } from "../../src/config/configuration.ts";
import { createLogger } from "../../src/observability/logger.ts";
import { GatewayFiles, type TestPod } from "./gateway-files.ts";
import { type MetricSamples, parseMetrics } from "./taken-path.ts";
import { issueCertificate } from "./test-certificates.ts";

export const NODE_NAME = "runtime-node";

export interface NodeGatewayOptions {
  /** Path of the runtime's unix socket. */
  readonly socket: string;
  readonly pods: readonly Omit<TestPod, "nodeName">[];
  /** Whether one process is API server and node, or one fronts the other. */
  readonly legs: "one process" | "two processes";
  /** What the node says of itself in the cluster. */
  readonly declaredFeatures?: readonly string[];
  /** More of `listeners.kubelet`. */
  readonly listener?: object;
  /** More sections of the node's configuration, and of the API server's where that is a process of its own. */
  readonly node?: object;
  readonly apiServer?: object;
  /** More of the API server's section `kubelet`. */
  readonly kubelet?: object;
}

export interface NodeGateway {
  readonly apiServerUrl: string;
  readonly kubeletUrl: string;
  readonly token: string;
  readonly kubeconfig: string;
  /** PEM: who the API server is to the node, and whom it believes. */
  readonly client: { readonly cert: string; readonly key: string; readonly ca: string };
  readonly logLines: readonly string[];
  readApiMetrics(): Promise<MetricSamples>;
  readNodeMetrics(): Promise<MetricSamples>;
  stop(): Promise<void>;
}

/** A gateway for kubectl in front of a kubelet listener of our own, over TLS with client certificates, in front of a runtime. */
export async function startNodeGateway(options: NodeGatewayOptions): Promise<NodeGateway> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-node-"));
  const files = new GatewayFiles();
  const started: RunningGateway[] = [];
  const logLines: string[] = [];
  const logger = createLogger({ level: "debug", destination: { write: (line) => void logLines.push(line) } });
  const start = async (file: string) => {
    const gateway = await startGateway(parseConfiguration(readFileSync(file, "utf8"), file), logger);
    started.push(gateway);
    return gateway;
  };
  const stop = async () => {
    for (const gateway of started) await gateway.shutDown();
    files.remove();
    rmSync(folder, { recursive: true, force: true });
  };
  const write = (name: string, text: string) => {
    const file = path.join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  try {
    const authority = await issueCertificate({ commonName: "node authority" });
    const serving = await issueCertificate({ commonName: `system:node:${NODE_NAME}` }, authority, {
      addresses: ["127.0.0.1"],
      usage: "server",
    });
    const subject = { commonName: "kube-apiserver-kubelet-client", organizations: ["node-admins"] };
    const client = await issueCertificate(subject, authority, { usage: "client" });
    const isOne = options.legs === "one process";
    const port = isOne ? await freePort() : 0;
    const listener = {
      port,
      tls: { certFile: write("node.crt", serving.cert), keyFile: write("node.key", serving.key) },
      authentication: { clientCAFile: write("node-ca.crt", authority.cert) },
      runtime: { endpoint: `unix://${options.socket}`, nodeName: NODE_NAME },
      ...options.listener,
    };
    const node = isOne
      ? undefined
      : await start(
          write(
            "node.json",
            JSON.stringify({
              apiVersion: "sluice.dev/v1alpha1",
              kind: "GatewayConfiguration",
              listeners: { kubelet: listener, apiServer: { port: 0 }, admin: { port: 0 } },
              logging: { level: "debug" },
              timeouts: { shutdownGracePeriod: "0s" },
              ...options.node,
            }),
          ),
        );
    const kubeletPort = node === undefined ? port : Number(new URL(node.kubeletUrl ?? "").port);
    await files.write({
      nodes: [{ name: NODE_NAME, port: kubeletPort, declaredFeatures: options.declaredFeatures ?? [] }],
      pods: options.pods.map((pod) => ({ ...pod, nodeName: NODE_NAME })),
      kubeletAuthority: authority.cert,
      listeners: isOne ? { kubelet: listener } : {},
      kubelet: {
        clientCertificateFile: write("client.crt", client.cert),
        clientKeyFile: write("client.key", client.key),
        verifyNodeName: true,
        ...options.kubelet,
      },
      configuration: {
        timeouts: { shutdownGracePeriod: "0s" },
        ...(isOne ? options.node : options.apiServer),
      },
    });
    const api = await start(files.configurationFile);
    const metricsOf = async ({ adminUrl }: RunningGateway) =>
      parseMetrics(await (await fetch(new URL("/metrics", adminUrl))).text());
    return {
      apiServerUrl: api.apiServerUrl,
      kubeletUrl: (node ?? api).kubeletUrl ?? "",
      token: files.token,
      kubeconfig: files.writeKubeconfig(api.apiServerUrl),
      client: { ...client, ca: authority.cert },
      logLines,
      readApiMetrics: () => metricsOf(api),
      readNodeMetrics: () => metricsOf(node ?? api),
      stop: async () => {
        started.reverse();
        await stop();
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** A port that was free a moment ago. One process must know its own node's port before it listens. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}
