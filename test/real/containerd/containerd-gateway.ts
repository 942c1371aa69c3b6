import { startCriNodeAdapter } from "../../support/cri-node-adapter.ts";
import { selfSignedPair } from "../../support/gateway-files.ts";
import { startTestGateway, type TestGateway } from "../../support/test-gateway.ts";
import type { RunningContainerd } from "./start-containerd.ts";
import { runWebPod, webPod } from "./web-pod.ts";

export interface ContainerdGateway extends TestGateway {
  /** What the node was asked for: method, protocol and subresource of each upgrade. */
  readonly nodeUpgrades: readonly string[];
}

/** A gateway whose one node is this containerd, behind kubelet routes over TLS, with the web pod on it. */
export async function startContainerdGateway(containerd: RunningContainerd): Promise<ContainerdGateway> {
  const tls = await selfSignedPair("node");
  const node = await startCriNodeAdapter({ cri: containerd.cri, pods: [await runWebPod(containerd)], tls });
  const gateway = await startTestGateway({
    nodes: [{ name: "containerd-node", port: node.port }],
    pods: [{ name: webPod.name, nodeName: "containerd-node", container: webPod.container }],
    kubeletAuthority: tls.cert,
  });
  return {
    ...gateway,
    nodeUpgrades: node.upgrades,
    stop: async () => {
      await gateway.stop();
      await node.close();
    },
  };
}
