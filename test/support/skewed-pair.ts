import { createSelfSignedCertificate } from "../../packages/client/src/net/self-signed.ts";
import { runWebNode } from "./fake-nodes.ts";
import { startNodeGateway } from "./node-gateway.ts";
import type { SkewedApiServer, SkewedNode } from "./skew.ts";
import type { MetricSamples } from "./taken-path.ts";
import { startTestGateway } from "./test-gateway.ts";

/** An API server of one kind in front of a node of one kind, with the pod `web`. */
export interface SkewedPair {
  readonly kubeconfig: string;
  readMetrics(): Promise<MetricSamples>;
  stop(): Promise<void>;
}

const POD = { name: "web", container: "main" };
const FEATURE = "ExtendWebSocketsToKubelet";
const declaredBy = ({ declares }: SkewedNode) => (declares ? [FEATURE] : []);

/** The node is the fake node, whose commands run on this machine. */
export async function pairWithFakeNode(api: SkewedApiServer, node: SkewedNode): Promise<SkewedPair> {
  const tls = await createSelfSignedCertificate();
  const { name, speaksWebSocket } = node;
  const fakeNode = await runWebNode({ name, declaresWebSockets: speaksWebSocket, tls });
  const gateway = await startTestGateway({
    nodes: [{ name, port: fakeNode.port, declaredFeatures: declaredBy(node) }],
    pods: [{ ...POD, nodeName: name }],
    kubeletAuthority: tls.certPem,
    kubelet: { streaming: { mode: api.mode } },
    configuration: { featureGates: api.featureGates },
  });
  return {
    kubeconfig: gateway.kubeconfig,
    readMetrics: gateway.readMetrics,
    stop: async () => {
      await gateway.stop();
      await fakeNode.close();
    },
  };
}

/**
 * The node is a second Sluice with a kubelet listener in front of a container runtime that speaks
 * only SPDY.
 */
export async function pairWithRuntime(
  socket: string,
  api: SkewedApiServer,
  node: SkewedNode,
): Promise<SkewedPair> {
  const { kubeconfig, readApiMetrics, stop } = await startNodeGateway({
    socket,
    legs: "two processes",
    pods: [POD],
    declaredFeatures: declaredBy(node),
    node: { featureGates: { [FEATURE]: node.speaksWebSocket } },
    apiServer: { featureGates: api.featureGates },
    kubelet: { streaming: { mode: api.mode } },
  });
  return { kubeconfig, readMetrics: readApiMetrics, stop };
}
