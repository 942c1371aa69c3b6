import { runFakeNode } from "../../src/fake-node/index.ts";
import { startHaproxy } from "./layer7-proxies.ts";
import { startTestGateway, type TestGateway } from "./test-gateway.ts";

export const HOP_POD = { name: "web", container: "main" };

/** A gateway whose node stands behind an HAProxy that refuses SPDY and passes WebSocket, with the pod `web`. */
export async function startBehindWebSocketHop(configuration: object = {}): Promise<TestGateway> {
  const fakeNode = await runFakeNode({
    name: "far",
    declaresWebSockets: true,
    pods: [
      {
        namespace: "default",
        name: HOP_POD.name,
        uid: "far",
        containers: [{ name: HOP_POD.container, command: ["/bin/sh", "-c", "exec cat"] }],
      },
    ],
  });
  const hop = await startHaproxy(fakeNode.port, true);
  const gateway = await startTestGateway({
    nodes: [{ name: "far", port: Number(new URL(hop.url).port) }],
    pods: [{ ...HOP_POD, nodeName: "far" }],
    kubeletAuthority: hop.authority,
    kubelet: { streaming: { nodes: { far: "websocket-only" } } },
    configuration,
  });
  return {
    ...gateway,
    stop: async () => {
      await gateway.stop();
      await hop.stop();
      await fakeNode.close();
    },
  };
}
