import { GatewayFiles, type TestPod } from "./gateway-files.ts";
import { freePorts } from "./http/loopback.ts";
import type { MetricSamples } from "./taken-path.ts";
import { issueCertificate } from "./test-certificates.ts";
import { startTestGateway, type TestGateway } from "./test-gateway.ts";

export const NODE_NAME = "runtime-node";

export interface NodeGatewayOptions {
  /** Path of the runtime's unix socket. */
  readonly socket: string;
  readonly pods: readonly Omit<TestPod, "nodeName">[];
  /** Whether one process is both API server and node, or one process fronts the other. */
  readonly legs: "one process" | "two processes";
  /** The features that the node declares in the cluster. */
  readonly declaredFeatures?: readonly string[];
  /** Further fields of `listeners.kubelet`. */
  readonly listener?: object;
  /**
   * Further sections of the node's configuration, and of the API server's if that is a separate
   * process.
   */
  readonly node?: object;
  readonly apiServer?: object;
  /** Further fields of the API server's section `kubelet`. */
  readonly kubelet?: object;
}

export interface NodeGateway {
  readonly apiServerUrl: string;
  readonly kubeletUrl: string;
  readonly token: string;
  readonly kubeconfig: string;
  /** PEM: the API server's identity to the node, and the authority that it trusts. */
  readonly client: { readonly cert: string; readonly key: string; readonly ca: string };
  logLines(): readonly string[];
  readApiMetrics(): Promise<MetricSamples>;
  readNodeMetrics(): Promise<MetricSamples>;
  stop(): Promise<void>;
}

/**
 * A gateway for kubectl in front of our own kubelet listener, over TLS with client certificates, in
 * front of a runtime.
 */
export async function startNodeGateway(options: NodeGatewayOptions): Promise<NodeGateway> {
  const files = new GatewayFiles();
  const started: TestGateway[] = [];
  const stop = async () => {
    for (const gateway of started.reverse()) await gateway.stop();
    files.remove();
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
    const [port = 0] = isOne ? await freePorts(1) : [];
    const listener = {
      port,
      tls: { certFile: files.write("node.crt", serving.cert), keyFile: files.write("node.key", serving.key) },
      authentication: { clientCAFile: files.write("node-ca.crt", authority.cert) },
      runtime: { endpoint: `unix://${options.socket}`, nodeName: NODE_NAME },
      ...options.listener,
    };
    const timeouts = { shutdownGracePeriod: "0s" };
    const node = isOne
      ? undefined
      : await startTestGateway({
          scheme: "http",
          listeners: { apiServer: null, kubelet: listener },
          timeouts,
          ...(options.node && { configuration: options.node }),
        });
    if (node !== undefined) started.push(node);
    const api = await startTestGateway({
      nodes: [
        {
          name: NODE_NAME,
          port: node === undefined ? port : Number(new URL(node.running.kubeletUrl ?? "").port),
          declaredFeatures: options.declaredFeatures ?? [],
        },
      ],
      pods: options.pods.map((pod) => ({ ...pod, nodeName: NODE_NAME })),
      kubeletAuthority: authority.cert,
      listeners: isOne ? { kubelet: listener } : {},
      kubelet: {
        clientCertificateFile: files.write("client.crt", client.cert),
        clientKeyFile: files.write("client.key", client.key),
        verifyNodeName: true,
        ...options.kubelet,
      },
      timeouts,
      configuration: { ...(isOne ? options.node : options.apiServer) },
    });
    started.push(api);
    return {
      apiServerUrl: api.apiServerUrl,
      kubeletUrl: (node ?? api).running.kubeletUrl ?? "",
      token: api.token,
      kubeconfig: api.kubeconfig,
      client: { ...client, ca: authority.cert },
      logLines: () => started.flatMap(({ logLines }) => logLines),
      readApiMetrics: api.readMetrics,
      readNodeMetrics: (node ?? api).readMetrics,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * A port that was free a moment ago: a single process must know its own node's port before it
 * listens.
 */
