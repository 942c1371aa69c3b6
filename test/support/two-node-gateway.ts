import { runFakeNode } from "../../src/fake-node/index.ts";
import { INGRESS_CLASS, ingressObject } from "./front-door.ts";
import { startTestGateway, type TestGateway } from "./test-gateway.ts";

/**
 * A gateway over TLS before two fake nodes: the pod `web`, whose node speaks SPDY, and `web-ws`, whose node takes WebSockets. Its
 * own API leg is behind its Ingress as well, under `/clusters/own`.
 */
export async function startTwoNodeGateway(configuration: object = {}): Promise<TestGateway> {
  const pods = [
    { pod: "web", node: "node-spdy", declaresWebSockets: false },
    { pod: "web-ws", node: "node-ws", declaresWebSockets: true },
  ];
  const command = ["/bin/sh", "-c", "exec cat"];
  const nodes = await Promise.all(
    pods.map(({ pod, node, declaresWebSockets }) =>
      runFakeNode({
        name: node,
        declaresWebSockets,
        pods: [{ namespace: "default", name: pod, uid: pod, containers: [{ name: "main", command }] }],
      }),
    ),
  );
  const closeNodes = (): Promise<unknown> => Promise.all(nodes.map((node) => node.close()));
  const backend = { resource: { apiGroup: "sluice.dev", kind: "StreamingGateway", name: "own" } };
  const paths = [{ path: "/clusters/own", pathType: "Prefix", backend }];
  try {
    const gateway = await startTestGateway({
      nodes: nodes.map(({ name, port, declaredFeatures }) => ({ name, port, declaredFeatures })),
      pods: pods.map(({ pod, node }) => ({ name: pod, nodeName: node, container: "main" })),
      kubeletAuthority: "",
      manifests: [INGRESS_CLASS, ingressObject("own", { rules: [{ http: { paths } }] })],
      listeners: {
        ingress: { address: "127.0.0.1", httpPort: 0, httpsPort: 0, streamingGateways: [{ name: "own" }] },
      },
      configuration: { kubelet: { scheme: "http", allowedAddresses: ["127.0.0.0/8"] }, ...configuration },
    });
    return {
      ...gateway,
      stop: async () => {
        await gateway.stop();
        await closeNodes();
      },
    };
  } catch (error) {
    await closeNodes();
    throw error;
  }
}
