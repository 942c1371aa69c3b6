// packages/lab/demo: the demo's cluster, folder and self-check

import { randomUUID } from "node:crypto";
import { CLAIMED_KUBERNETES_VERSION } from "@sluice/client/internal/config/version";
import type { SelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import type { FakeNode } from "../fake-node/fake-node.ts";
import { runFakeNode } from "../fake-node/run-fake-node.ts";

/** One node of the demo and the pod on it. */
interface DemoNode {
  readonly nodeName: string;
  readonly podName: string;
  readonly declaresWebSockets: boolean;
  readonly refusesOtherProtocols?: boolean;
}

const demoNodes: readonly DemoNode[] = [
  { nodeName: "node-spdy", podName: "web", declaresWebSockets: false },
  { nodeName: "node-ws", podName: "web-ws", declaresWebSockets: true },
];

/** Used only by the self-check, to show the bridge. */
const webSocketOnlyNode: DemoNode = {
  nodeName: "node-ws-only",
  podName: "web-ws-only",
  declaresWebSockets: true,
  refusesOtherProtocols: true,
};

/** Each container's main process, for attach. It echoes its input. */
const MAIN_COMMAND = ["/bin/sh", "-c", 'echo "container main is running"; exec cat'];

/** What selects the pod web, for `exec deploy/web` and `port-forward svc/web`. */
const SELECTING = `apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: default }
spec:
  replicas: 1
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers:
        - { name: main, image: fake-node, stdin: true, ports: [{ containerPort: 80 }, { containerPort: 7 }] }
status: { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: default }
spec:
  clusterIP: None
  selector: { app: web }
  ports: [{ port: 80 }]
`;

interface DemoCluster {
  /** Manifests with the nodes, pods and the namespace. */
  readonly manifests: string;
  close(): Promise<void>;
}

/**
 * Starts the fake nodes on loopback. They accept only requests with the client certificate.
 * `hasWebSocketOnlyNode` adds a third one that accepts only WebSockets.
 */
export async function startDemoCluster(
  nodeCertificate: SelfSignedCertificate,
  clientAuthorityPem: string,
  { hasWebSocketOnlyNode }: { readonly hasWebSocketOnlyNode: boolean },
): Promise<DemoCluster> {
  const running: { node: FakeNode; demoNode: DemoNode; podUid: string }[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(running.map(({ node }) => node.close()));
  };
  try {
    for (const demoNode of hasWebSocketOnlyNode ? [...demoNodes, webSocketOnlyNode] : demoNodes) {
      const { nodeName, podName, declaresWebSockets, refusesOtherProtocols = false } = demoNode;
      const podUid = randomUUID();
      const node = await runFakeNode({
        name: nodeName,
        declaresWebSockets,
        refusesOtherProtocols,
        tls: { ...nodeCertificate, clientCaPem: clientAuthorityPem },
        pods: [
          {
            namespace: "default",
            name: podName,
            uid: podUid,
            containers: [{ name: "main", command: MAIN_COMMAND }],
          },
        ],
      });
      running.push({ node, demoNode, podUid });
    }
  } catch (error) {
    await close();
    throw error;
  }
  const documents = running.map(({ node, demoNode, podUid }) => nodeAndPod(node, demoNode, podUid));
  const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: { name: default }\n";
  return {
    manifests: [namespace, ...documents, SELECTING].join("---\n"),
    close,
  };
}

function nodeAndPod(node: FakeNode, demoNode: DemoNode, podUid: string): string {
  const { nodeName, podName, refusesOtherProtocols = false } = demoNode;
  const annotations = refusesOtherProtocols ? "{ sluice.dev/streaming: websocket-only }" : "{}";
  const startedAt = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  return `apiVersion: v1
kind: Node
metadata: { name: ${nodeName}, annotations: ${annotations} }
status:
  addresses:
    - { type: InternalIP, address: ${node.address} }
  daemonEndpoints: { kubeletEndpoint: { Port: ${node.port} } }
  declaredFeatures: ${JSON.stringify(node.declaredFeatures)}
  nodeInfo: { kubeletVersion: ${CLAIMED_KUBERNETES_VERSION}, osImage: this machine, kernelVersion: "", containerRuntimeVersion: fake-node://1 }
  conditions:
    - { type: Ready, status: "True", reason: KubeletReady }
---
apiVersion: v1
kind: Pod
metadata:
  name: ${podName}
  namespace: default
  uid: ${podUid}
  labels: { app: ${podName} }
spec:
  nodeName: ${nodeName}
  containers:
    - name: main
      image: fake-node
      stdin: true
      ports:
        - { containerPort: 80 }
        - { containerPort: 7 }
status:
  phase: Running
  podIP: 127.0.0.1
  startTime: ${startedAt}
  conditions:
    - { type: PodScheduled, status: "True" }
    - { type: Initialized, status: "True" }
    - { type: ContainersReady, status: "True" }
    - { type: Ready, status: "True" }
  containerStatuses:
    - name: main
      image: fake-node
      imageID: fake-node
      containerID: fake-node://${podUid}
      ready: true
      restartCount: 0
      started: true
      state: { running: { startedAt: ${startedAt} } }
`;
}
